//! Every Rust file opens with `//!` lines that say what it is for.

use super::Finding;
use super::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let ours =
        tree.rust_files().filter(|file| file.path.starts_with("crates/") || file.path.starts_with("xtask/"));
    let first_line = |text: &str| {
        let mut lines = text.lines().map(str::trim);
        lines.find(|line| !line.is_empty() && !line.starts_with('#')).map(ToOwned::to_owned)
    };
    ours.filter(|file| !first_line(&file.text).is_some_and(|line| line.starts_with("//! ")))
        .map(|file| {
            Finding::new(&file.path, 1, "no header; open with one to five `//!` lines on what it is for")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::check;

    #[test]
    fn files_without_a_header_are_found() {
        let found = findings_in(
            check,
            &[
                ("crates/app/src/lib.rs", "//! Operations."),
                ("crates/app/src/send.rs", "\n#![cfg(unix)]\n//! Sends."),
                ("crates/app/tests/send.rs", "use std::fmt;\n//! Late."),
                ("crates/app/src/empty.rs", ""),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/app/tests/send.rs:1: no header; open with one to five `//!` lines on what it is for",
                "crates/app/src/empty.rs:1: no header; open with one to five `//!` lines on what it is for",
            ]
        );
    }
}
