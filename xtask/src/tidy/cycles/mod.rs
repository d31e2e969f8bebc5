//! No cycle of imports between the files of a crate. A parent module and its children are not a cycle.

mod imports;
mod module_tree;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use self::module_tree::ModuleTree;
use super::Finding;
use super::tree::Tree;

/// A file, by its index in the module tree, with the files it imports from.
type Graph = BTreeMap<usize, BTreeSet<usize>>;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let names: BTreeSet<&str> = tree.manifests().map(|(name, _)| name).collect();
    names.into_iter().flat_map(|name| check_crate(tree, name)).collect()
}

fn check_crate(tree: &Tree, name: &str) -> Vec<Finding> {
    let folder = if name == "xtask" { "xtask/src/".to_owned() } else { format!("crates/{name}/src/") };
    let modules = ModuleTree::read(tree, &folder);
    let graph = modules.imports();
    cyclic_components(&graph)
        .iter()
        .map(|component| {
            let shortest = shortest_cycle(&graph, component);
            let files: Vec<&str> = shortest.iter().map(|file| modules.path(*file)).collect();
            let text = format!(
                "{} files import each other (shortest cycle: {} and back); move what they share into a file of its own",
                component.len(),
                files.join(" → ").replace(&folder, ""),
            );
            Finding::new(files[0], 1, text)
        })
        .collect()
}

/// The strongly connected components of more than one file (Kosaraju).
fn cyclic_components(graph: &Graph) -> Vec<BTreeSet<usize>> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for file in graph.keys() {
        visit(graph, *file, &mut seen, &mut order);
    }
    let mut reversed = Graph::new();
    for (from, to) in graph {
        reversed.entry(*from).or_default();
        for to in to {
            reversed.entry(*to).or_default().insert(*from);
        }
    }
    let mut seen = BTreeSet::new();
    let components = order.iter().rev().map(|file| {
        let mut component = Vec::new();
        visit(&reversed, *file, &mut seen, &mut component);
        BTreeSet::from_iter(component)
    });
    components.filter(|component| component.len() > 1).collect()
}

/// Visits files depth first, each once; `order` gets a file after all files that it leads to.
fn visit(graph: &Graph, file: usize, seen: &mut BTreeSet<usize>, order: &mut Vec<usize>) {
    if seen.insert(file) {
        for next in graph.get(&file).into_iter().flatten() {
            visit(graph, *next, seen, order);
        }
        order.push(file);
    }
}

/// The shortest cycle among the files of a component, beginning with the cycle's alphabetically first file.
fn shortest_cycle(graph: &Graph, component: &BTreeSet<usize>) -> Vec<usize> {
    let paths = component.iter().filter_map(|start| find_cycle_from(graph, component, *start));
    paths.min_by_key(Vec::len).unwrap_or_else(|| component.iter().copied().collect())
}

/// Searches breadth first from `start` until `start` is reached again.
fn find_cycle_from(graph: &Graph, component: &BTreeSet<usize>, start: usize) -> Option<Vec<usize>> {
    let mut paths = std::collections::VecDeque::from([vec![start]]);
    let mut seen = BTreeSet::new();
    while let Some(path) = paths.pop_front() {
        for next in graph.get(path.last()?)? {
            if *next == start {
                return Some(path);
            }
            if component.contains(next) && seen.insert(*next) {
                paths.push_back([path.as_slice(), &[*next]].concat());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::check;

    const MANIFEST: (&str, &str) = ("crates/app/Cargo.toml", "");

    #[test]
    fn cycles_are_found_through_groups_re_exports_and_paths() {
        let found = findings_in(
            check,
            &[
                MANIFEST,
                ("crates/app/src/lib.rs", "mod a;\nmod b;\nmod send;\nmod c;\nmod d;"),
                ("crates/app/src/a.rs", "use crate::{b::{self, B}, c};\npub struct A;"),
                ("crates/app/src/b.rs", "pub struct B;\nfn f() -> super::a::A { A }"),
                ("crates/app/src/c.rs", "use crate::send::Draft;\npub fn c() {}"),
                ("crates/app/src/send/mod.rs", "mod draft;\npub(crate) use draft::Draft;"),
                ("crates/app/src/send/draft.rs", "use crate::d;\npub struct Draft;\nfn f() { d::d() }"),
                ("crates/app/src/d.rs", "use super::c::c as other;\npub fn d() {}"),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/app/src/a.rs:1: 2 files import each other (shortest cycle: a.rs → b.rs and back); \
                 move what they share into a file of its own",
                "crates/app/src/c.rs:1: 3 files import each other (shortest cycle: c.rs → send/draft.rs → d.rs and \
                 back); move what they share into a file of its own",
            ]
        );
    }

    #[test]
    fn parents_children_tests_and_other_crates_are_no_cycle() {
        let found = findings_in(
            check,
            &[
                MANIFEST,
                ("crates/app/src/lib.rs", "mod a;\nmod b;\npub use a::A;"),
                (
                    "crates/app/src/a.rs",
                    "//! use crate::b::B;\nmod part;\nuse self::part::P;\nuse std::fmt;\npub struct A;\n\
                     #[cfg(test)]\nmod tests { use crate::b::B; fn f() { crate::b::g() } }",
                ),
                ("crates/app/src/a/part.rs", "use super::A;\npub struct P;"),
                ("crates/app/src/b.rs", "use crate::A;\npub struct B;\n#[cfg(test)]\nmod tests;"),
                ("crates/app/src/b/tests.rs", "use crate::a::A;\nuse super::B;"),
            ],
        );
        assert_eq!(found, [""; 0]);
    }
}
