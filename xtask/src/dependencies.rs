//! CI step that checks what is linked into the programs on this platform: licences, banned crates, and where crates
//! come from. (cargo-deny, the usual tool, has no prebuilt binary that reads current lock files, and takes minutes to
//! build.)

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::cargo::cargo;

/// Licences that a dependency may have, each with the reason why a program under MIT or Apache-2.0 may contain it.
const LICENCES: &[(&str, &str)] = &[
    ("Apache-2.0", "ours; its text is distributed with the program"),
    ("MIT", "ours; its notice is distributed with the program"),
    ("BSD-3-Clause", "permissive: notice only"),
    ("ISC", "permissive: notice only"),
    ("Zlib", "permissive: no notice in binaries"),
    ("Unicode-3.0", "permissive: notice only; data of ICU and Unicode"),
    (
        "MPL-2.0",
        "copyleft by file: we change no file of cssparser, selectors and dtoa-short, and crates.io has the source",
    ),
    (
        "CDLA-Permissive-2.0",
        "for data, without duties of those who use it: the root certificates of webpki-roots",
    ),
];

/// Crates that must not be linked, directly or through others, and why.
const BANNED: &[(&str, &str)] = &[
    ("openssl", "TLS is rustls with aws-lc-rs"),
    ("openssl-sys", "TLS is rustls with aws-lc-rs; a library of the system would differ between machines"),
    ("native-tls", "TLS is rustls with aws-lc-rs on every system"),
    ("ring", "aws-lc-rs is the one provider of cryptography; disable the feature that brings in another"),
    ("chrono", "days and time zones are jiff's"),
    ("curl", "HTTP is hyper's; net::guarded_http refuses addresses that are not public"),
    ("reqwest", "HTTP is hyper's; net::guarded_http refuses addresses that are not public"),
    ("ureq", "HTTP is hyper's; net::guarded_http refuses addresses that are not public"),
];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Prints each problem; returns whether there is none.
pub(crate) fn are_allowed(repository: &Path) -> anyhow::Result<bool> {
    let mut command = cargo(repository);
    command.args(["tree", "--locked", "--workspace", "-e", "normal,build"]);
    command.args(["--prefix", "none", "-f", "{p}|{l}"]);
    let output = command.output().context("cargo tree does not start")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let lock = std::fs::read_to_string(repository.join("Cargo.lock")).context("Cargo.lock cannot be read")?;
    let tree = String::from_utf8(output.stdout)?;
    ensure!(tree.lines().any(|line| line.starts_with("postroad ")), "cargo tree does not list `postroad`");
    let mut findings = check_tree(&tree)?;
    findings.extend(check_lock(&lock)?);
    for finding in &findings {
        eprintln!("{finding}");
    }
    Ok(findings.is_empty())
}

/// Checks lines like `serde v1.0.229|MIT OR Apache-2.0`.
fn check_tree(tree: &str) -> anyhow::Result<Vec<String>> {
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.is_empty());
    let packages = lines.map(|line| line.split_once('|').with_context(|| format!("`{line}` has no licence")));
    let packages = packages.collect::<anyhow::Result<BTreeSet<_>>>()?;
    Ok(packages
        .into_iter()
        .flat_map(|(package, licence)| {
            let name = package.split(' ').next().unwrap_or_default();
            let ban = BANNED.iter().find(|(banned, _)| *banned == name);
            let ban = ban.map(|(_, reason)| format!("{package} is banned: {reason}"));
            let is_allowed = is_allowed(licence).unwrap_or(false);
            let problem = (!is_allowed).then(|| {
                format!("{package}: the licence `{licence}` is not in LICENCES of xtask/src/dependencies.rs")
            });
            ban.into_iter().chain(problem)
        })
        .collect())
}

/// Checks that all crates come from crates.io, also those for tests.
fn check_lock(lock: &str) -> anyhow::Result<Vec<String>> {
    let lock: toml::Table = lock.parse().context("Cargo.lock is not TOML")?;
    let packages =
        lock.get("package").and_then(toml::Value::as_array).context("Cargo.lock lists no packages")?;
    let text = |package: &toml::Value, key: &str| {
        package.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned()
    };
    let sources = packages.iter().map(|package| (text(package, "name"), text(package, "source")));
    let foreign = sources.filter(|(_, source)| !source.is_empty() && source != CRATES_IO);
    Ok(foreign
        .map(|(name, source)| format!("{name} comes from {source}; only crates.io is allowed"))
        .collect())
}

/// Whether every part of an SPDX licence expression has an allowed alternative; `None` if it is empty or not valid.
fn is_allowed(expression: &str) -> Option<bool> {
    // `/` is an older form of OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<String> = spaced.split_whitespace().map(ToOwned::to_owned).collect();
    let mut rest = Expression(words.into_iter().peekable());
    let is_allowed = rest.any()?;
    rest.0.next().is_none().then_some(is_allowed)
}

/// The words of an SPDX licence expression that are not parsed yet.
struct Expression(std::iter::Peekable<std::vec::IntoIter<String>>);

impl Expression {
    /// Parses alternatives joined by `OR`: whether one of them is allowed.
    fn any(&mut self) -> Option<bool> {
        let mut is_allowed = self.all()?;
        while self.0.next_if(|word| word == "OR").is_some() {
            is_allowed |= self.all()?;
        }
        Some(is_allowed)
    }

    /// Parses parts joined by `AND`: whether all of them are allowed.
    fn all(&mut self) -> Option<bool> {
        let mut is_allowed = self.one()?;
        while self.0.next_if(|word| word == "AND").is_some() {
            is_allowed &= self.one()?;
        }
        Some(is_allowed)
    }

    /// Parses a licence, or an expression in parentheses: whether it is allowed.
    fn one(&mut self) -> Option<bool> {
        let word = self.0.next()?;
        if word == "(" {
            let is_allowed = self.any()?;
            return (self.0.next()? == ")").then_some(is_allowed);
        }
        let is_name = word.chars().all(|c| c.is_ascii_alphanumeric() || "-.+".contains(c));
        let is_operator = ["AND", "OR", "WITH"].contains(&word.as_str());
        // An exception after `WITH` only grants more than the licence, so any exception is allowed.
        let is_complete = self.0.next_if(|word| word == "WITH").is_none() || self.0.next().is_some();
        let is_allowed = LICENCES.iter().any(|(licence, _)| *licence == word);
        (is_name && !is_operator && is_complete).then_some(is_allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_that_are_not_listed_are_found() {
        let tree = "good v1.0.0|MIT\ncopyleft v2.0.0 (proc-macro)|GPL-3.0-only\nnameless v0.1.0|\ngood v1.0.0|MIT (*)\n\n\
                    copyleft v2.0.0 (proc-macro)|GPL-3.0-only (*)\n";
        assert_eq!(
            check_tree(tree).unwrap(),
            [
                "copyleft v2.0.0 (proc-macro): the licence `GPL-3.0-only` is not in LICENCES of xtask/src/dependencies.rs",
                "nameless v0.1.0: the licence `` is not in LICENCES of xtask/src/dependencies.rs",
            ]
        );
    }

    #[test]
    fn output_in_another_form_is_an_error() {
        assert_eq!(
            check_tree("good v1.0.0 MIT\n").unwrap_err().to_string(),
            "`good v1.0.0 MIT` has no licence"
        );
    }

    #[test]
    fn expressions_need_one_alternative_and_every_part() {
        for allowed in [
            "MIT",
            "Unlicense/MIT",
            "LGPL-2.1-or-later OR MIT",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
            "ISC AND (Apache-2.0 OR GPL-2.0-only)",
            "GPL-2.0-only AND MIT OR ISC",
        ] {
            assert_eq!(is_allowed(allowed), Some(true), "{allowed}");
        }
        for refused in ["GPL-2.0-only", "MIT AND AGPL-3.0-only", "(MIT OR ISC) AND GPL-2.0-only"] {
            assert_eq!(is_allowed(refused), Some(false), "{refused}");
        }
        for invalid in ["", "MIT OR", "(MIT", "MIT)", "MIT ISC", "AND MIT", "MIT WITH", "MIT, ISC"] {
            assert_eq!(is_allowed(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn banned_crates_are_found() {
        let found = check_tree("openssl-sys v0.9.1|MIT\nopenssl-probe v0.1.0|MIT\n").unwrap();
        assert_eq!(
            found,
            [
                "openssl-sys v0.9.1 is banned: TLS is rustls with aws-lc-rs; a library of the system would differ between machines"
            ]
        );
    }

    #[test]
    fn foreign_registries_and_git_are_found() {
        let package = |name: &str, source: &str| format!("[[package]]\nname = \"{name}\"\n{source}\n");
        let lock = [
            package("ours", ""),
            package("good", &format!("source = \"{CRATES_IO}\"")),
            package("private", "source = \"registry+https://crates.example/index\""),
            package("patched", "source = \"git+https://git.example/patched#abc\""),
        ];
        assert_eq!(
            check_lock(&lock.concat()).unwrap(),
            [
                "private comes from registry+https://crates.example/index; only crates.io is allowed",
                "patched comes from git+https://git.example/patched#abc; only crates.io is allowed",
            ]
        );
    }
}
