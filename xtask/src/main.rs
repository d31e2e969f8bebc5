//! Developer commands: `cargo xtask tidy`, `test`, `ci`, `bench`, `bounces` and `fuzz`.
//!
//! This crate depends on little, so that the first command on a fresh clone answers within seconds.

mod bench;
mod cargo;
mod ci;
mod dependencies;
mod fuzz;
mod interrupt;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::test::Compiler;

/// Postroad's developer commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check what the compiler cannot: crate layers, SQL only in the store, no wall clock, file headers, …
    ///
    /// `cargo test` runs the same checks. Each line says where, what is wrong, and the fix.
    Tidy,
    /// Run all tests with a private PostgreSQL server
    ///
    /// Installs PostgreSQL, python3, curl, jq, swaks, node and Chromium with apt-get if they are missing, and libraries
    /// with pip and npm. Starts a PostgreSQL server in a temporary folder, runs `cargo test --workspace` with
    /// POSTROAD_TEST_POSTGRES set, and removes the server however the run ends.
    /// If POSTROAD_TEST_POSTGRES is set already, that server is used and none is started.
    Test {
        /// For `cargo test`: `cargo xtask test -- -p postroad-store accept -- --nocapture`
        #[arg(last = true, value_name = "ARGUMENTS")]
        arguments: Vec<String>,
    },
    /// What the build server runs: formatting, spelling, licences and sources of dependencies, then `test` compiled by clippy, whose warnings are errors
    Ci,
    /// Measure Postroad beside Postfix and Haraka, in a build with link-time optimisation
    ///
    /// Installs the peers if they are missing (apt-get, npm), runs private instances on the loopback, and prints the
    /// medians; docs/performance.md explains the figures. Wants an idle machine. `cargo xtask bench -- --help` lists parts
    /// and options. `cargo xtask bench pacing [--seeds N]` runs in simulated time, on any machine.
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
        arguments: Vec<String>,
    },
    /// Run the fuzz targets under libFuzzer, guided by coverage
    ///
    /// Every parser of untrusted bytes is a target (crates/fuzz). A finding is a crash, an input that takes over 10 s,
    /// or the use of more than 600 MiB of memory. The tests run each target for a moment as well.
    Fuzz(fuzz::Options),
    /// Measure how many real bounces are understood; lists the others, except those that are held out
    Bounces {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FOLDER")]
        arguments: Vec<String>,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Tidy => tidy::run(&repository()),
        Command::Test { arguments } => test::run(&repository(), Compiler::Rustc, &arguments),
        Command::Ci => ci::run(&repository()),
        Command::Bench { arguments } => bench::run(&repository(), &arguments),
        Command::Fuzz(options) => fuzz::run(&repository(), &options),
        Command::Bounces { arguments } => bench::run_bounces(&repository(), &arguments),
    }
}

/// The top folder of the workspace, wherever the command was typed.
fn repository() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).parent().expect("xtask is a folder of the repository").to_owned()
}
