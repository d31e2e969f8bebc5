//! The test command: a private PostgreSQL server, then `cargo test`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use postroad_testkit::postgres::SERVER_VARIABLE;
use postroad_testkit::{Cluster, PYTHON_VARIABLE};
use tokio::process::Command;

use crate::interrupt::Interrupts;
use crate::{programs, python};

/// The exit code is cargo's. The server goes with `cluster`, on every way out.
pub(crate) async fn run(repository: &Path, arguments: &[String]) -> anyhow::Result<ExitCode> {
    programs::ensure()?;
    let interpreter = python::ensure(&target_folder(repository))?;
    // Before the server starts: from here on no signal leaves one behind.
    let mut interrupts = Interrupts::listen()?;
    let mut cargo = cargo(repository);
    cargo.arg("test");
    if !names_packages(arguments) {
        cargo.arg("--workspace");
    }
    cargo.args(arguments);
    cargo.env(PYTHON_VARIABLE, interpreter);
    let cluster = match std::env::var(SERVER_VARIABLE) {
        Ok(url) => {
            eprintln!("PostgreSQL: {url} (from {SERVER_VARIABLE})");
            None
        }
        Err(_) => Some(Cluster::start().context("cannot start PostgreSQL for the tests")?),
    };
    if let Some(cluster) = &cluster {
        eprintln!("PostgreSQL: {} (private, until the tests end)", cluster.url());
        cargo.env(SERVER_VARIABLE, cluster.url());
    }
    let code = interrupts.run(cargo).await?;
    drop(cluster);
    Ok(ExitCode::from(code))
}

/// The cargo that runs us, at the top of the repository.
pub(crate) fn cargo(repository: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(repository);
    cargo
}

/// Where cargo builds; what is made once stays there.
pub(crate) fn target_folder(repository: &Path) -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    repository.join(given.unwrap_or_else(|| "target".into()))
}

/// `--workspace` would silently win over `-p`.
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
