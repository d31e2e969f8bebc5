//! The build server's steps; `.ci/run` calls this, and so can anybody.

use std::path::Path;
use std::process::ExitCode;

use crate::cargo::cargo;
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
    eprintln!("== tests: cargo xtask test");
    test::run(repository, &[])
}
