//! No marks of unfinished work in the source.

use super::Finding;
use super::tree::Tree;

/// Written in two halves, so that this file passes its own check.
const MARKS: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("to", "do!("), concat!("unimple", "mented!(")];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files().filter(|file| file.path.contains("src/")) {
        for (number, line) in file.lines() {
            if let Some(mark) = MARKS.iter().find(|mark| line.contains(**mark)) {
                let text = format!("{mark}: finish it, or leave it out");
                findings.push(Finding::new(&file.path, number, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::{MARKS, check};

    #[test]
    fn marks_are_found() {
        for mark in MARKS {
            let source = format!("//! A file.\n// {mark}\n");
            let found = findings_in(check, &[("crates/app/src/lib.rs", &source), ("notes.md", mark)]);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with("crates/app/src/lib.rs:2: "));
        }
    }
}
