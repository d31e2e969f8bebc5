//! Both engines have migrations with the same names, numbered from 0001 without gaps.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::Tree;

const FOLDER: &str = "crates/store/migrations/";
const ENGINES: [&str; 2] = ["sqlite", "postgres"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let names = |engine: &str| -> BTreeSet<&str> {
        let folder = format!("{FOLDER}{engine}/");
        tree.files.iter().filter_map(|file| file.path.strip_prefix(&folder)).collect()
    };
    let mut findings = Vec::new();
    for (engine, other) in [(ENGINES[0], ENGINES[1]), (ENGINES[1], ENGINES[0])] {
        let path = |name: &str| format!("{FOLDER}{engine}/{name}");
        for name in names(engine).difference(&names(other)) {
            let text = format!("has no partner; write {FOLDER}{other}/{name}, if only a comment");
            findings.push(Finding::new(&path(name), 1, text));
        }
        for (index, name) in names(engine).iter().enumerate() {
            let expected = format!("{:04}_", index + 1);
            let rest = name.strip_prefix(&expected).and_then(|rest| rest.strip_suffix(".sql"));
            let is_named_well = rest.is_some_and(|rest| {
                !rest.is_empty()
                    && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            });
            if !is_named_well {
                let text = format!(
                    "must be named {expected}….sql, with a-z, 0-9 and _ only; numbers have no gaps and no doubles"
                );
                findings.push(Finding::new(&path(name), 1, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::check;

    #[test]
    fn missing_partners_and_gaps_are_found() {
        let found = findings_in(
            check,
            &[
                ("crates/store/migrations/sqlite/0001_messages.sql", ""),
                ("crates/store/migrations/sqlite/0003_events.sql", ""),
                ("crates/store/migrations/postgres/0001_messages.sql", ""),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/store/migrations/sqlite/0003_events.sql:1: has no partner; \
                 write crates/store/migrations/postgres/0003_events.sql, if only a comment",
                "crates/store/migrations/sqlite/0003_events.sql:1: must be named 0002_….sql, with a-z, 0-9 and _ only; \
                 numbers have no gaps and no doubles",
            ]
        );
        assert_eq!(findings_in(check, &[]), [""; 0]);
    }
}
