//! Finds dependencies that no file of their crate names, and dependencies that only tests name although they are not in
//! [dev-dependencies]. (cargo-machete, the usual tool, has no prebuilt binary and takes minutes to build.)

use std::collections::BTreeSet;

use super::Finding;
use super::manifests::dependency_tables;
use super::tree::{File, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.manifests().flat_map(|(_, manifest)| check_member(tree, manifest)).collect()
}

fn check_member(tree: &Tree, file: &File) -> Vec<Finding> {
    let Ok(manifest) = file.text.parse::<toml::Table>() else { return Vec::new() };
    let folder = file.path.trim_end_matches("Cargo.toml");
    let in_crate = words_below(tree, folder);
    let in_sources = words_below(tree, &format!("{folder}src/"));
    let mut findings = Vec::new();
    for (table, dependencies) in dependency_tables(&manifest) {
        let (words, problem) = if table == "dependencies" {
            (&in_sources, "is not used in src; remove it, or move it to [dev-dependencies]")
        } else {
            (&in_crate, "is used nowhere in the crate; remove it")
        };
        for name in dependencies.keys().filter(|name| !words.contains(name.replace('-', "_").as_str())) {
            let line = file.line_where(|line| line.starts_with(name.as_str()));
            let text = format!("{name} in [{table}] {problem}");
            findings.push(Finding::new(&file.path, line, text));
        }
    }
    findings
}

/// All words of the Rust files below a folder.
fn words_below<'a>(tree: &'a Tree, folder: &str) -> BTreeSet<&'a str> {
    let files = tree.rust_files().filter(|file| file.path.starts_with(folder));
    files.flat_map(|file| file.text.split(|c: char| !c.is_alphanumeric() && c != '_')).collect()
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::check;

    #[test]
    fn unused_dependencies_are_found() {
        let manifest = "[dependencies]\nserde-json = \"1\"\nbytes = \"1\"\n[dev-dependencies]\ntempfile = \"3\"\nrand = \"1\"\n";
        let found = findings_in(
            check,
            &[
                ("crates/app/Cargo.toml", manifest),
                ("crates/app/src/lib.rs", "use serde_json::Value; // bytesize"),
                ("crates/app/tests/it.rs", "use tempfile::TempDir; use bytes::Bytes;"),
                ("crates/api/src/lib.rs", "use rand::rng;"),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/app/Cargo.toml:3: bytes in [dependencies] is not used in src; remove it, or move it to [dev-dependencies]",
                "crates/app/Cargo.toml:6: rand in [dev-dependencies] is used nowhere in the crate; remove it",
            ]
        );
    }
}
