//! No paths of a developer's machine in the repository.

use super::Finding;
use super::tree::Tree;

/// Written in two halves, so that this file passes its own check.
const MACHINE_FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (number, line) in file.lines() {
            if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| names_folder(line, folder)) {
                let text = format!("a path under {folder} exists on one machine only; make it relative");
                findings.push(Finding::new(&file.path, number, text));
            }
        }
    }
    findings
}

/// Whether the line has a path in `folder`. A longer path or URL that contains `folder`, such as `example.com/home/`,
/// does not count.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-}*)]".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::{MACHINE_FOLDERS, check};

    #[test]
    fn machine_paths_are_found_and_urls_are_not() {
        let readme = format!("See https://example.com{0}a\nRun {0}me/postroad\n", MACHINE_FOLDERS[2]);
        let found = findings_in(check, &[("README.md", &readme)]);
        assert_eq!(
            found,
            [format!(
                "README.md:2: a path under {} exists on one machine only; make it relative",
                MACHINE_FOLDERS[2]
            )]
        );
    }
}
