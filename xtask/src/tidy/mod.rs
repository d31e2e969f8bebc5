//! Checks that the compiler cannot make. Each is a pure function over the repository's files.
//!
//! `cargo xtask tidy` prints what the checks find; a test below runs them too, so that `cargo test` fails on a
//! violation.

mod clock;
mod cycles;
mod headers;
mod layers;
mod machine_paths;
mod manifests;
mod migrations;
mod names;
mod retired_words;
mod rust_text;
mod sql;
mod tree;
mod unfinished;
mod unused_dependencies;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use tree::Tree;

type Check = fn(&Tree) -> Vec<Finding>;

const CHECKS: &[Check] = &[
    layers::check,
    cycles::check,
    retired_words::check,
    sql::check,
    clock::check,
    migrations::check,
    headers::check,
    manifests::check,
    machine_paths::check,
    names::check,
    unfinished::check,
    unused_dependencies::check,
];

/// A violation: its file and line, and a text that says what is wrong and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    text: String,
}

impl Finding {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// Prints the findings of all checks; fails if there are any.
pub(crate) fn run(repository: &Path) -> anyhow::Result<ExitCode> {
    let findings = list_findings(&Tree::read(repository)?);
    for finding in &findings {
        eprintln!("{finding}");
    }
    eprintln!("tidy: {} to mend", findings.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list_findings(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(tree)).collect();
    findings.sort();
    findings
}

/// Findings of `check` in a repository of these files, for the tests of the checks.
#[cfg(test)]
fn findings_in(check: Check, files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files)).iter().map(ToString::to_string).collect()
}

#[test]
fn the_repository_is_tidy() {
    let tree = Tree::read(&crate::repository()).unwrap();
    assert!(tree.file("xtask/src/main.rs").is_some(), "the repository was read");
    let findings: Vec<String> = list_findings(&tree).iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}
