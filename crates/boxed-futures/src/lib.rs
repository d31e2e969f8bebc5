//! `#[boxed_futures]` on an `impl` block makes its public async methods return boxed futures; `#[boxed_future]` does so for
//! one method or function.
//!
//! The compiler generates the code of an `async fn` in every crate that awaits the function, with everything that the
//! function awaits. Without these attributes, each crate above `store` compiles most of `store` again. A boxed future
//! is compiled once, in its own crate. It costs one allocation per call, which is negligible next to a transaction or
//! a DNS query.

mod lifetimes;

use lifetimes::Lifetimes;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Block, FnArg, GenericParam, ImplItem, ImplItemFn, ItemFn, ItemImpl, Pat, ReturnType, Signature, Type,
    Visibility,
};

/// Boxes the futures of the block's `pub async fn`s. Methods with type or const parameters or `impl Trait` arguments
/// stay as they are: the crates that call them compile them in any case.
#[proc_macro_attribute]
pub fn boxed_futures(
    _arguments: proc_macro::TokenStream,
    block: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let mut block = syn::parse_macro_input!(block as ItemImpl);
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item
            && method.sig.asyncness.is_some()
            && matches!(method.vis, Visibility::Public(_))
            && !is_generic(method)
        {
            box_future(&mut method.sig, &mut method.block);
        }
    }
    quote!(#block).into()
}

/// Boxes the future of an `async fn` that many other functions of its crate await. Otherwise each of them contains the
/// future, and the compiler proves again for each of them that everything in the future is `Send`.
#[proc_macro_attribute]
pub fn boxed_future(
    _arguments: proc_macro::TokenStream,
    function: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let mut function = syn::parse_macro_input!(function as ItemFn);
    if function.sig.asyncness.is_none() {
        return syn::Error::new_spanned(function.sig, "only the future of an `async fn` can be boxed")
            .to_compile_error()
            .into();
    }
    box_future(&mut function.sig, &mut function.block);
    quote!(#function).into()
}

fn is_generic(method: &ImplItemFn) -> bool {
    let has_type_parameter =
        method.sig.generics.params.iter().any(|parameter| !matches!(parameter, GenericParam::Lifetime(_)));
    let has_impl_argument = method.sig.inputs.iter().any(|input| match input {
        FnArg::Typed(argument) => lifetimes::has_impl_trait(&argument.ty),
        FnArg::Receiver(_) => false,
    });
    has_type_parameter || has_impl_argument
}

fn box_future(signature: &mut Signature, block: &mut Block) {
    let mut lifetimes = Lifetimes::for_output(&signature.output);
    let mut moves = TokenStream::new();
    for (number, input) in signature.inputs.iter_mut().enumerate() {
        match input {
            FnArg::Receiver(receiver) => lifetimes.name_receiver(receiver),
            FnArg::Typed(argument) => {
                lifetimes.name_argument(&mut argument.ty);
                // All arguments move into the future, even unused ones, as those of an `async fn` do.
                let pattern = &argument.pat;
                let name = match &**pattern {
                    Pat::Ident(named) if !named.ident.to_string().starts_with('_') => named.ident.clone(),
                    _ => format_ident!("argument_{number}"),
                };
                moves.extend(quote!(let (#pattern,) = (#name,);));
                *argument.pat = syn::parse_quote!(#name);
            }
        }
    }
    let output: Type = match &mut signature.output {
        ReturnType::Default => syn::parse_quote!(()),
        ReturnType::Type(_, output) => {
            lifetimes.name_output(output);
            (**output).clone()
        }
    };
    lifetimes.declare(&mut signature.generics);
    signature.asyncness = None;
    signature.output = syn::parse_quote! {
        -> ::std::pin::Pin<::std::boxed::Box<
            dyn ::std::future::Future<Output = #output> + ::std::marker::Send + 'future,
        >>
    };
    let statements = &block.stmts;
    *block = syn::parse_quote!({
        ::std::boxed::Box::pin(async move {
            #moves
            #(#statements)*
        })
    });
}
