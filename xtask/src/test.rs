//! The test command: a private PostgreSQL server, then `cargo test`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use postroad_test_programs::{Cluster, POSTGRES_VARIABLE, PYTHON_VARIABLE, install, node, python};

use crate::cargo::{cargo, target_folder};
use crate::interrupt::Interrupts;

/// Returns cargo's exit code. Dropping `cluster` stops the server on every path.
pub(crate) fn run(repository: &Path, arguments: &[String]) -> anyhow::Result<ExitCode> {
    install::ensure()?;
    let interpreter = python::ensure(&target_folder(repository))?;
    node::ensure(&target_folder(repository))?;
    // Before the server starts: from here on no signal leaves a server behind.
    let mut interrupts = Interrupts::listen()?;
    let mut cargo = cargo(repository);
    cargo.arg("test");
    if !names_packages(arguments) {
        cargo.arg("--workspace");
    }
    cargo.args(arguments);
    cargo.env(PYTHON_VARIABLE, interpreter);
    let cluster = match std::env::var(POSTGRES_VARIABLE) {
        Ok(url) => {
            eprintln!("PostgreSQL: {url} (from {POSTGRES_VARIABLE})");
            None
        }
        Err(_) => Some(Cluster::start().context("cannot start PostgreSQL for the tests")?),
    };
    if let Some(cluster) = &cluster {
        eprintln!("PostgreSQL: {} (private, until the tests end)", cluster.url());
        cargo.env(POSTGRES_VARIABLE, cluster.url());
    }
    let code = interrupts.run(cargo)?;
    drop(cluster);
    Ok(ExitCode::from(code))
}

/// `--workspace` would silently override `-p`.
fn names_packages(arguments: &[String]) -> bool {
    let for_cargo = arguments.iter().take_while(|argument| *argument != "--");
    let names = |argument: &String| {
        argument.starts_with("-p") || argument.starts_with("--package") || argument == "--workspace"
    };
    for_cargo.into_iter().any(names)
}

#[cfg(test)]
mod tests {
    use super::names_packages;

    #[test]
    fn packages_are_only_looked_for_before_the_dashes() {
        let split = |text: &str| text.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>();
        assert!(names_packages(&split("-p postroad-store accept")));
        assert!(names_packages(&split("--package=postroad-store")));
        assert!(!names_packages(&split("accept -- -p")));
        assert!(!names_packages(&[]));
    }
}
