//! The modules of a crate, and which file each import really leads to: re-exports are followed to the defining file.

use std::collections::{BTreeMap, BTreeSet};

use super::Graph;
use super::imports::{Names, Path};
use super::tokens::tokens;
use crate::tidy::tree::{File, Tree, is_rust};

/// Maximum number of re-exports that are followed for one path.
const RE_EXPORTS_MAX: usize = 8;

#[derive(Debug)]
struct Module {
    path: String,
    /// Module path from the crate's root; empty for the root.
    name: Vec<String>,
    names: Names,
}

#[derive(Debug)]
pub(super) struct ModuleTree {
    modules: Vec<Module>,
    by_name: BTreeMap<Vec<String>, usize>,
}

impl ModuleTree {
    /// All files of `folder` that a build without tests compiles, except programs of `bin/`, which are other crates.
    pub(super) fn read(tree: &Tree, folder: &str) -> Self {
        let is_of_crate = |file: &&File| {
            let rest = file.path.strip_prefix(folder);
            rest.is_some_and(|rest| is_rust(rest) && !rest.starts_with("bin/") && !is_for_tests(rest))
        };
        let modules: Vec<Module> = tree
            .files
            .iter()
            .filter(is_of_crate)
            .map(|file| Module {
                path: file.path.clone(),
                name: module_name(&file.path[folder.len()..]),
                names: Names::read(&tokens(&file.text)),
            })
            .collect();
        let by_name =
            modules.iter().enumerate().map(|(index, module)| (module.name.clone(), index)).collect();
        Self { modules, by_name }
    }

    pub(super) fn path(&self, file: usize) -> &str {
        &self.modules[file].path
    }

    /// Every file with the files that it imports from, without its own parents and children.
    pub(super) fn imports(&self) -> Graph {
        let of = |file: usize| {
            let names = &self.modules[file].names;
            let written = names.uses.values().chain(&names.globs).chain(&names.paths);
            let found = written.filter_map(|path| self.resolve(file, path, RE_EXPORTS_MAX));
            found.filter(|found| !self.are_family(file, *found)).collect::<BTreeSet<usize>>()
        };
        (0..self.modules.len()).map(|file| (file, of(file))).collect()
    }

    /// Whether the files are the same, or one is an ancestor of the other in the module tree.
    fn are_family(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.modules[one].name, &self.modules[other].name);
        one.starts_with(other) || other.starts_with(one)
    }

    /// The file that defines what `path` names when it is written in `from`; `None` for other crates.
    fn resolve(&self, from: usize, path: &Path, re_exports_left: usize) -> Option<usize> {
        let mut module = self.modules[from].name.clone();
        let mut words = path.iter();
        let first = words.next()?;
        match first.as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                module.pop()?;
            }
            _ => return self.find(from, first, words.as_slice(), re_exports_left),
        }
        while let Some((_, rest)) = words.as_slice().split_first().filter(|(first, _)| *first == "super") {
            module.pop()?;
            words = rest.iter();
        }
        let start = *self.by_name.get(&module)?;
        match words.next() {
            Some(word) => self.find(start, word, words.as_slice(), re_exports_left).or(Some(start)),
            None => Some(start),
        }
    }

    /// The file that `word` leads to from inside the module `at`: a child, an item, or something brought in by `use`.
    fn find(&self, at: usize, word: &str, rest: &[String], re_exports_left: usize) -> Option<usize> {
        let module = &self.modules[at];
        let child = [module.name.as_slice(), &[word.to_owned()]].concat();
        if let Some(child) = self.by_name.get(&child) {
            return match rest.split_first() {
                Some((word, rest)) => self.find(*child, word, rest, re_exports_left).or(Some(*child)),
                None => Some(*child),
            };
        }
        if module.names.items.contains(word) {
            return Some(at);
        }
        let left = re_exports_left.checked_sub(1)?;
        if let Some(path) = module.names.uses.get(word) {
            // `use serde;` names another crate, so there is nothing to follow.
            let leads_on = path.first().is_some_and(|first| first != word);
            return leads_on.then(|| self.resolve(at, &[path.as_slice(), rest].concat(), left)).flatten();
        }
        module.names.globs.iter().find_map(|glob| {
            let path = [glob.as_slice(), &[word.to_owned()], rest].concat();
            let found = self.resolve(at, &path, left)?;
            // If the glob's module lacks the word, `resolve` returns that module itself.
            let is_there = self.modules[found].names.items.contains(path.last()?);
            is_there.then_some(found)
        })
    }
}

/// `send/draft.rs` is `send::draft`, `send/mod.rs` is `send`, `lib.rs` the root.
fn module_name(path: &str) -> Vec<String> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if matches!(path, "lib" | "main") { Vec::new() } else { path.split('/').map(ToOwned::to_owned).collect() }
}

/// Whether the file belongs to a test module, which is named `tests` by convention.
fn is_for_tests(path: &str) -> bool {
    path.split('/').any(|part| part == "tests.rs" || part == "tests")
}
