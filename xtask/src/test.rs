//! The test command: a private PostgreSQL server, then `cargo test`.
//!
//! Many tests run real servers against real time. On a machine that stalls for seconds, one of thousands may fail only
//! because of the stall. So a run of all tests repeats a few failed tests, one at a time, and names them in its last
//! lines.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context;
use postroad_test_programs::{Cluster, POSTGRES_VARIABLE, PYTHON_VARIABLE, install, node, python};

use crate::cargo::{cargo, clippy_variables, target_folder};
use crate::interrupt::Interrupts;

/// Maximum number of failed tests that are repeated. If more tests fail, none is repeated: a slow machine alone does
/// not make so many fail.
const REPEATED_MAX: usize = 20;

/// Environment variable with the number of tests that the test runner runs at once.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// Number of tests that run at once for each processor: most tests wait for a process, a socket or a clock.
const TESTS_PER_PROCESSOR: usize = 2;

/// Settings for a compilation that is not repeated: no incremental compilation, and no debug information.
const ONE_COMPILATION: [(&str, &str); 2] = [("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "none")];

/// What compiles our crates and their tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compiler {
    Rustc,
    /// The compiler with clippy's lints, whose warnings are errors: one compilation instead of one for clippy and one
    /// for the tests.
    Clippy,
}

/// Runs all tests, or `cargo test` with `arguments` if there are any; returns cargo's exit code. Dropping `cluster`
/// stops the PostgreSQL server on every path.
pub(crate) fn run(repository: &Path, compiler: Compiler, arguments: &[String]) -> anyhow::Result<ExitCode> {
    install::ensure()?;
    let interpreter = python::ensure(&target_folder(repository))?;
    node::ensure(&target_folder(repository))?;
    // Listen before the server starts: from here on no signal leaves a server behind.
    let mut interrupts = Interrupts::listen()?;
    let cluster = match std::env::var(POSTGRES_VARIABLE) {
        Ok(url) => {
            eprintln!("PostgreSQL: {url} (from {POSTGRES_VARIABLE})");
            None
        }
        Err(_) => Some(Cluster::start().context("cannot start PostgreSQL for the tests")?),
    };
    if let Some(cluster) = &cluster {
        eprintln!("PostgreSQL: {} (private, until the tests end)", cluster.url());
    }
    let test = || {
        let mut cargo = cargo(repository);
        cargo.arg("test").env(PYTHON_VARIABLE, &interpreter);
        if compiler == Compiler::Clippy {
            cargo.envs(clippy_variables()).envs(ONE_COMPILATION);
        }
        if std::env::var_os(THREADS_VARIABLE).is_none() {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            cargo.env(THREADS_VARIABLE, (processors * TESTS_PER_PROCESSOR).to_string());
        }
        if let Some(cluster) = &cluster {
            cargo.env(POSTGRES_VARIABLE, cluster.url());
        }
        cargo
    };
    if arguments.is_empty() {
        return run_all(&mut interrupts, test);
    }
    let mut cargo = test();
    if !names_packages(arguments) {
        cargo.arg("--workspace");
    }
    cargo.args(arguments);
    let code = interrupts.run(cargo)?;
    Ok(ExitCode::from(code))
}

fn run_all(interrupts: &mut Interrupts, test: impl Fn() -> Command) -> anyhow::Result<ExitCode> {
    let mut all = test();
    all.args(["--workspace", "--no-fail-fast"]);
    let (code, output) = interrupts.run_and_read(all)?;
    if code == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let Some(failed) = failed_tests(&output) else { return Ok(ExitCode::from(code)) };
    if failed.is_empty() || failed.len() > REPEATED_MAX {
        return Ok(ExitCode::from(code));
    }
    eprintln!("== running again, one at a time: {}", failed.join(" "));
    let mut again = test();
    again.args(["--workspace", "--no-fail-fast", "--", "--test-threads=1", "--exact"]).args(&failed);
    let code = interrupts.run(again)?;
    if code == 0 {
        eprintln!("== passed only when run again, so mend these tests: {}", failed.join(" "));
    }
    Ok(ExitCode::from(code))
}

/// Names of the tests that failed; `None` if a test program ended without its summary, or lines are missing.
fn failed_tests(output: &str) -> Option<Vec<&str>> {
    let failed: Vec<&str> = output.lines().filter_map(failed_test).collect();
    let starts = output.lines().filter(|line| line.starts_with("running ")).count();
    let summaries: Vec<&str> = output.lines().filter(|line| line.starts_with("test result: ")).collect();
    let counts = summaries.iter().map(|line| failed_count(line)).collect::<Option<Vec<usize>>>()?;
    (starts == summaries.len() && counts.iter().sum::<usize>() == failed.len()).then_some(failed)
}

/// Reads `a::b` from `test a::b ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    // `--exact` wants the name without the runner's remark.
    Some(name.strip_suffix(" - should panic").unwrap_or(name))
}

/// Reads `2` from `test result: FAILED. 739 passed; 2 failed; …`.
fn failed_count(summary: &str) -> Option<usize> {
    let (before, _) = summary.split_once(" failed;")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Whether the arguments choose packages. Then `--workspace` is not added: it would silently override `-p`.
fn names_packages(arguments: &[String]) -> bool {
    let for_cargo = arguments.iter().take_while(|argument| *argument != "--");
    let names = |argument: &String| {
        argument.starts_with("-p") || argument.starts_with("--package") || argument == "--workspace"
    };
    for_cargo.into_iter().any(names)
}

#[cfg(test)]
mod tests {
    use super::{failed_tests, names_packages};

    #[test]
    fn packages_are_only_looked_for_before_the_dashes() {
        let split = |text: &str| text.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>();
        assert!(names_packages(&split("-p postroad-store accept")));
        assert!(names_packages(&split("--package=postroad-store")));
        assert!(!names_packages(&split("accept -- -p")));
        assert!(!names_packages(&[]));
    }

    #[test]
    fn failed_tests_are_read_only_from_whole_output() {
        let good = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n\nfailures:\n    a::c\n\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        assert_eq!(failed_tests(good), Some(vec!["a::c"]));
        let panics = good.replace("a::c ...", "a::c - should panic ...");
        assert_eq!(failed_tests(&panics), Some(vec!["a::c"]));
        let crashed = "running 2 tests\ntest a::b ... ok\n";
        assert_eq!(failed_tests(&format!("{good}{crashed}")), None);
        let lost = good.replace("test a::c ... FAILED\n", "");
        assert_eq!(failed_tests(&lost), None);
    }
}
