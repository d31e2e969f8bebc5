//! CI steps; `.ci/run` calls this, and so can anybody.

use std::path::Path;
use std::process::{Command, ExitCode};

use postroad_test_programs::{install, python};

use crate::cargo::{cargo, target_folder};
use crate::interrupt::Interrupts;
use crate::test;

const STEPS: &[(&str, &[&str])] = &[
    ("formatting", &["fmt", "--all", "--check"]),
    ("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
];

/// Stops at the first step that fails, with its exit code.
pub(crate) fn run(repository: &Path) -> anyhow::Result<ExitCode> {
    for (name, arguments) in STEPS {
        eprintln!("== {name}: cargo {}", arguments.join(" "));
        let mut command = cargo(repository);
        command.args(*arguments);
        let code = Interrupts::listen()?.run(command)?;
        if code != 0 {
            eprintln!("== {name} failed");
            return Ok(ExitCode::from(code));
        }
    }
    let code = check_spelling(repository)?;
    if code != 0 {
        eprintln!("== spelling failed; exceptions go into typos.toml");
        return Ok(ExitCode::from(code));
    }
    eprintln!("== tests: cargo xtask test");
    test::run(repository, &[])
}

fn check_spelling(repository: &Path) -> anyhow::Result<u8> {
    eprintln!("== spelling: typos");
    install::ensure()?;
    let typos = python::ensure(&target_folder(repository))?.with_file_name("typos");
    let mut command = Command::new(typos);
    command.current_dir(repository);
    Interrupts::listen()?.run(command)
}
