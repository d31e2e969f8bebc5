//! The bench and bounces commands: build programs of `crates/bench`, then run them.

use std::path::Path;
use std::process::ExitCode;

use crate::cargo::{cargo, target_folder};
use crate::interrupt::Interrupts;
use anyhow::Context;

/// Name of the part of the benchmark that needs neither an optimised build nor an idle machine.
const PACING: &str = "pacing";
const PACING_SEEDS: u32 = 20;

/// Builds Postroad and the benchmark with link-time optimisation, as packages are built, and runs the benchmark.
pub(crate) fn run(repository: &Path, arguments: &[String]) -> anyhow::Result<ExitCode> {
    if let [PACING, options @ ..] = arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        return run_pacing(repository, options);
    }
    let mut build = cargo(repository);
    build.args(["build", "--profile", "dist", "-p", "postroad", "-p", "postroad-bench", "--bins"]);
    let mut interrupts = Interrupts::listen()?;
    let code = interrupts.run(build)?;
    if code != 0 {
        return Ok(ExitCode::from(code));
    }
    let mut bench = std::process::Command::new(target_folder(repository).join("dist/postroad-bench"));
    bench.args(arguments);
    Ok(ExitCode::from(interrupts.run(bench)?))
}

/// Runs receivers with hidden limits in simulated time: the cases of a test of `delivery`, with more seeds and longer.
/// Prints the table, and fails if a case misses its target. `--seeds N` changes the number of seeds.
fn run_pacing(repository: &Path, options: &[&str]) -> anyhow::Result<ExitCode> {
    let seeds = match options {
        [] => PACING_SEEDS,
        ["--seeds", number] => {
            number.parse().ok().filter(|seeds| *seeds > 0).context("write `--seeds` and a number")?
        }
        _ => anyhow::bail!("`bench pacing` takes only `--seeds N`"),
    };
    let mut table = cargo(repository);
    table.args([
        "test",
        "-q",
        "-p",
        "postroad-delivery",
        "--lib",
        "schedule::receivers::",
        "--",
        "--nocapture",
    ]);
    table.env("POSTROAD_PACING_SEEDS", seeds.to_string());
    Ok(ExitCode::from(Interrupts::listen()?.run(table)?))
}

pub(crate) fn run_bounces(repository: &Path, arguments: &[String]) -> anyhow::Result<ExitCode> {
    let mut run = cargo(repository);
    // Folder arguments are relative to the caller's directory.
    run.current_dir(std::env::current_dir()?).args(["run", "-p", "postroad-bench", "--bin", "bounces", "--"]);
    run.args(arguments);
    Ok(ExitCode::from(Interrupts::listen()?.run(run)?))
}
