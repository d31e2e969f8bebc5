//! Micro-benchmarks of hot pure functions: time of one call, and with valgrind its instructions, which do not
//! depend on other load.

use anyhow::{Context, ensure};
use tokio::process::Command;

use super::Bench;
use super::report::Report;
use postroad_test_programs::install;

/// Shortest run that counts.
const RUN_SECONDS_MIN: f64 = 0.5;
/// Iterations of two runs, whose difference excludes the setup.
const COUNTED_ITERATIONS: [u64; 2] = [20, 60];

pub(super) async fn measure(
    bench: &Bench,
    report: &mut Report,
    with_instructions: bool,
) -> anyhow::Result<()> {
    if with_instructions {
        install::ensure_packages(&[("valgrind", "valgrind")])?;
    }
    let names = run(Command::new(bench.program("micro"))).await?.0;
    for name in names.lines() {
        eprintln!("micro · {name}");
        let mut iterations = 1_u64;
        // Increase until a run is long enough to measure.
        while seconds(bench, name, iterations).await? < RUN_SECONDS_MIN {
            iterations *= 4;
        }
        let instructions = if with_instructions { Some(instructions(bench, name).await?) } else { None };
        for _ in 0..bench.rounds {
            let each = seconds(bench, name, iterations).await? / iterations as f64;
            let mut figures = vec![("microseconds", each * 1e6), ("per_second_and_core", 1.0 / each)];
            figures.extend(instructions.map(|count| ("instructions", count)));
            report.add("one call on a 10 kB message", name, figures);
        }
    }
    Ok(())
}

async fn seconds(bench: &Bench, name: &str, iterations: u64) -> anyhow::Result<f64> {
    let mut command = Command::new(bench.program("micro"));
    command.args([name, &iterations.to_string()]);
    run(command).await?.0.trim().parse().context("a number of seconds")
}

async fn instructions(bench: &Bench, name: &str) -> anyhow::Result<f64> {
    let mut totals = [0.0; 2];
    for (total, iterations) in totals.iter_mut().zip(COUNTED_ITERATIONS) {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        command.arg(bench.program("micro")).args([name, &iterations.to_string()]);
        let errors = run(command).await?.1;
        let line = errors.lines().find_map(|line| line.split_once("Collected : "));
        *total = line.context("valgrind counts")?.1.trim().parse()?;
    }
    Ok((totals[1] - totals[0]) / (COUNTED_ITERATIONS[1] - COUNTED_ITERATIONS[0]) as f64)
}

/// Runs a command; returns its output on stdout and stderr.
async fn run(mut command: Command) -> anyhow::Result<(String, String)> {
    let output = command.output().await?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{command:?} failed: {errors}");
    Ok((String::from_utf8(output.stdout)?, errors))
}
