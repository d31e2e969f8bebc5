//! The ci command: the steps of CI, whose script `.ci/run` calls this command.

use std::path::Path;
use std::process::{Command, ExitCode};

use postroad_test_programs::{install, python};

use crate::cargo::{cargo, target_folder};
use crate::dependencies;
use crate::interrupt::Interrupts;
use crate::test::{self, Compiler};

/// Runs the steps in order. Stops at the first step that fails, with that step's exit code.
pub(crate) fn run(repository: &Path) -> anyhow::Result<ExitCode> {
    let code = check_formatting(repository)?;
    if code != 0 {
        eprintln!("== formatting failed; `cargo fmt --all` mends it");
        return Ok(ExitCode::from(code));
    }
    let code = check_spelling(repository)?;
    if code != 0 {
        eprintln!("== spelling failed; exceptions go into typos.toml");
        return Ok(ExitCode::from(code));
    }
    eprintln!("== licences, bans and sources of dependencies: cargo tree, Cargo.lock");
    if !dependencies::are_allowed(repository)? {
        eprintln!("== dependencies failed; the lists are in xtask/src/dependencies.rs");
        return Ok(ExitCode::FAILURE);
    }
    eprintln!("== clippy and tests: cargo xtask test, compiled by clippy");
    test::run(repository, Compiler::Clippy, &[])
}

fn check_formatting(repository: &Path) -> anyhow::Result<u8> {
    eprintln!("== formatting: cargo fmt --all --check");
    let mut command = cargo(repository);
    command.args(["fmt", "--all", "--check"]);
    Interrupts::listen()?.run(command)
}

fn check_spelling(repository: &Path) -> anyhow::Result<u8> {
    eprintln!("== spelling: typos");
    install::ensure()?;
    let typos = python::ensure(&target_folder(repository))?.with_file_name("typos");
    let mut command = Command::new(typos);
    command.current_dir(repository);
    Interrupts::listen()?.run(command)
}
