//! Only `store` contains SQL and links database drivers, apart from the exceptions below for tests and benchmarks.

use super::Finding;
use super::rust_text::{Kind, split};
use super::tree::Tree;

/// Folders with SQL; `testkit` creates databases for tests.
const FOLDERS_WITH_SQL: &[&str] = &["crates/store/", "crates/testkit/"];
/// Further files with SQL, each with its reason.
const FILES_WITH_SQL: &[&str] = &[
    "crates/bench/src/bin/search_bench.rs", // writes ten million messages faster than the store's own calls
    "crates/bench/src/bin/analytics_fill.rs", // writes ten million events, likewise
    "crates/bench/src/bin/portal_fill.rs",  // gives messages of analytics_fill the states that pages show
    "xtask/src/tidy/sql.rs",                // the examples below
];

/// Words that a text contains in this order, with anything between them, if it is an SQL statement.
const STATEMENTS: &[&[&str]] = &[
    &["SELECT ", " FROM "],
    &["INSERT INTO "],
    &["UPDATE ", " SET "],
    &["DELETE FROM "],
    &["CREATE TABLE "],
];

/// Database drivers, with the members (by folder) that may link them.
const DRIVERS: &[(&str, &[&str])] = &[
    ("rusqlite", &["bench", "store", "testkit"]),
    ("tokio-postgres", &["store", "testkit"]),
    ("deadpool-postgres", &["store"]),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        let is_allowed = FOLDERS_WITH_SQL.iter().any(|folder| file.path.starts_with(folder))
            || FILES_WITH_SQL.contains(&file.path.as_str());
        if is_allowed {
            continue;
        }
        for piece in split(&file.text) {
            if piece.kind == Kind::Text && is_statement(piece.text) {
                findings.push(Finding::new(
                    &file.path,
                    piece.line,
                    "SQL outside the store; make it a method of Store",
                ));
            }
        }
    }
    for (name, file) in tree.manifests() {
        for (driver, _) in DRIVERS.iter().filter(|(_, allowed)| !allowed.contains(&name)) {
            let names_driver = |line: &str| {
                let rest = line.strip_prefix(driver);
                rest.is_some_and(|rest| rest.starts_with([' ', '=', '.']))
            };
            if file.text.lines().any(names_driver) {
                let text = format!("{driver} outside the store; go through postroad-store");
                findings.push(Finding::new(&file.path, file.line_where(names_driver), text));
            }
        }
    }
    findings
}

fn is_statement(text: &str) -> bool {
    let one_line = text.split(|c: char| c.is_whitespace() || c == '\\').collect::<Vec<_>>().join(" ");
    STATEMENTS.iter().any(|words| {
        let mut rest = Some(one_line.as_str());
        for word in *words {
            // The trailing space of a word may be the leading space of the next.
            rest = rest.and_then(|rest| rest.find(word).map(|at| &rest[at + word.len() - 1..]));
        }
        rest.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings_in;
    use super::check;

    #[test]
    fn statements_and_drivers_outside_the_store_are_found() {
        let found = findings_in(
            check,
            &[
                ("crates/app/src/find.rs", "let a = 1;\nlet q = \"SELECT id\n  FROM messages\";"),
                ("crates/app/tests/find.rs", "run(r#\"INSERT INTO a VALUES (1)\"#)"),
                ("crates/api/src/lib.rs", "// SELECT a FROM b\nlet q = \"UPDATE a \\\n SET b = 1\";"),
                ("crates/api/src/text.rs", "let q = \"Select a plan from the list, then SET it\";"),
                ("crates/store/src/lib.rs", "let q = \"DELETE FROM a\";"),
                ("crates/app/Cargo.toml", "[dependencies]\nrusqlite.workspace = true"),
                ("crates/testkit/Cargo.toml", "[dependencies]\ntokio-postgres.workspace = true"),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/app/src/find.rs:2: SQL outside the store; make it a method of Store",
                "crates/app/tests/find.rs:1: SQL outside the store; make it a method of Store",
                "crates/api/src/lib.rs:2: SQL outside the store; make it a method of Store",
                "crates/app/Cargo.toml:2: rusqlite outside the store; go through postroad-store",
            ]
        );
    }
}
