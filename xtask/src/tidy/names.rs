//! File and folder names say what is inside: no `utils`, `helpers` and the like.

use super::Finding;
use super::tree::Tree;

const VAGUE_NAMES: &[&str] =
    &["common", "helper", "helpers", "manager", "managers", "misc", "util", "utilities", "utils"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let stems = file.path.split('/').map(|part| part.split('.').next().unwrap_or_default());
        if let Some(stem) =
            stems.into_iter().find(|stem| VAGUE_NAMES.contains(&stem.to_ascii_lowercase().as_str()))
        {
            let text = format!("`{stem}` says nothing; name it after what it is for");
            findings.push(Finding::new(&file.path, 1, text));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::check;

    #[test]
    fn vague_names_are_found() {
        let found = findings_in(
            check,
            &[("crates/app/src/utils.rs", ""), ("tests/common/mod.rs", ""), ("src/send.rs", "")],
        );
        assert_eq!(
            found,
            [
                "crates/app/src/utils.rs:1: `utils` says nothing; name it after what it is for",
                "tests/common/mod.rs:1: `common` says nothing; name it after what it is for",
            ]
        );
    }
}
