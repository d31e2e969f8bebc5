//! Names for the elided lifetimes of a signature: the future does not outlive any of them.
//!
//! Where possible, all become the one lifetime `'future`, so that the method has no bounds on lifetimes. With such
//! bounds rustc proves for each method again that everything in its future is `Send`: it caches these proofs only for
//! methods without bounds. The repeated proofs took a quarter of the compile time of the crate `app`.

use syn::visit_mut::{self, VisitMut};
use syn::{GenericParam, Generics, Lifetime, Receiver, ReceiverKind, ReturnType, Type, TypeReference};

pub(crate) struct Lifetimes {
    /// Whether elided lifetimes become `'future`. Lifetimes behind `&mut` never do: `&mut T` is invariant in `T`, so
    /// the compiler could not shorten them.
    is_shared: bool,
    /// How many `&mut` surround the type that is visited.
    mutable_depth: usize,
    /// Names given to elided lifetimes of the arguments.
    named: Vec<Lifetime>,
    /// Lifetime of `&self`, which elided lifetimes of the result take.
    receiver: Option<Lifetime>,
}

impl Lifetimes {
    /// Names for a signature with this result. If the result has elided lifetimes, each argument keeps a lifetime of its
    /// own, because the result may outlive the future.
    pub(crate) fn for_output(output: &ReturnType) -> Self {
        let is_shared = match output {
            ReturnType::Default => true,
            ReturnType::Type(_, output) => !has_elided(output),
        };
        Self { is_shared, mutable_depth: 0, named: Vec::new(), receiver: None }
    }

    pub(crate) fn name_receiver(&mut self, receiver: &mut Receiver) {
        match &mut receiver.kind {
            ReceiverKind::Reference(_, lifetime, _) => {
                let name = lifetime.take().unwrap_or_else(|| self.new_name());
                *lifetime = Some(name.clone());
                self.receiver = Some(name);
            }
            ReceiverKind::Typed(_, ty) => {
                let known = self.named.len();
                self.name_argument(ty);
                self.receiver = self.named.get(known).cloned();
            }
            _ => {}
        }
    }

    /// Names elided lifetimes of an argument.
    pub(crate) fn name_argument(&mut self, ty: &mut Type) {
        self.visit_type_mut(ty);
    }

    /// Names elided lifetimes of the result as Rust does: they take the receiver's lifetime, or else the lifetime of
    /// the arguments. If the arguments have several lifetimes, Rust would refuse; here the result takes the first.
    pub(crate) fn name_output(&self, output: &mut Type) {
        let lifetime = self.receiver.clone().or_else(|| self.named.first().cloned());
        if let Some(lifetime) = lifetime {
            NameElided(lifetime).visit_type_mut(output);
        }
    }

    /// Declares the new names and `'future` in the signature; every lifetime must outlive `'future`.
    pub(crate) fn declare(self, generics: &mut Generics) {
        let declared = generics.lifetimes().map(|parameter| parameter.lifetime.clone());
        let all: Vec<Lifetime> = declared.chain(self.named.iter().cloned()).collect();
        for (at, lifetime) in self.named.into_iter().enumerate() {
            generics.params.insert(at, GenericParam::Lifetime(syn::LifetimeParam::new(lifetime)));
        }
        generics.params.insert(0, syn::parse_quote!('future));
        let bounds = &mut generics.make_where_clause().predicates;
        bounds.extend(
            all.iter().map(|lifetime| -> syn::WherePredicate { syn::parse_quote!(#lifetime: 'future) }),
        );
    }

    /// The name of the next elided lifetime: `'future`, or a new name.
    fn new_name(&mut self) -> Lifetime {
        if self.is_shared && self.mutable_depth == 0 {
            return Lifetime::new("'future", proc_macro2::Span::call_site());
        }
        let name = format!("'argument_{}", self.named.len());
        let lifetime = Lifetime::new(&name, proc_macro2::Span::call_site());
        self.named.push(lifetime.clone());
        lifetime
    }
}

impl VisitMut for Lifetimes {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        reference.lifetime.get_or_insert_with(|| self.new_name());
        let added_depth = usize::from(reference.mutability.is_some());
        self.mutable_depth += added_depth;
        visit_mut::visit_type_reference_mut(self, reference);
        self.mutable_depth -= added_depth;
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = self.new_name();
        }
    }
}

/// Gives this name to all elided lifetimes of a type.
struct NameElided(Lifetime);

impl VisitMut for NameElided {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        reference.lifetime.get_or_insert_with(|| self.0.clone());
        visit_mut::visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = self.0.clone();
        }
    }
}

fn has_elided(ty: &Type) -> bool {
    struct Find(bool);
    impl VisitMut for Find {
        fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
            self.0 |= reference.lifetime.is_none();
            visit_mut::visit_type_reference_mut(self, reference);
        }

        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            self.0 |= lifetime.ident == "_";
        }
    }
    let mut find = Find(false);
    find.visit_type_mut(&mut ty.clone());
    find.0
}

pub(crate) fn has_impl_trait(ty: &Type) -> bool {
    struct Find(bool);
    impl VisitMut for Find {
        fn visit_type_impl_trait_mut(&mut self, _: &mut syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut find = Find(false);
    find.visit_type_mut(&mut ty.clone());
    find.0
}
