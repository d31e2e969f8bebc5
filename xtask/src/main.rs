//! What a developer types every day: `cargo xtask tidy`, `cargo xtask test`, `cargo xtask ci`, `cargo xtask bench`,
//! `cargo xtask bounces`.

mod bench;
mod bounces;
mod ci;
mod interrupt;
mod programs;
mod python;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Postroad's developer commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check what the compiler cannot: crate floors, SQL only in the store, no wall clock, file headers, …
    ///
    /// `cargo test` runs the same checks. Each line says where, what is wrong, and the fix.
    Tidy,
    /// Run all tests with a private PostgreSQL server
    ///
    /// Installs PostgreSQL, python3 and curl with apt-get if they are missing, starts a server in a temporary folder,
    /// runs `cargo test --workspace` with POSTROAD_TEST_POSTGRES set, and removes the server however the run ends.
    /// If POSTROAD_TEST_POSTGRES is set already, that server is used and none is started.
    Test {
        /// For `cargo test`: `cargo xtask test -- -p postroad-store accept -- --nocapture`
        #[arg(last = true, value_name = "ARGUMENTS")]
        arguments: Vec<String>,
    },
    /// What the build server runs: formatting, clippy without warnings, then `test`
    Ci,
    /// Measure accepting: messages/s, p50 and p99 at 1, 16, 128 and 1,024 callers, in a release build
    Bench {
        /// Seconds for each number of callers
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Measure PostgreSQL too (a private server)
        #[arg(long)]
        postgres: bool,
        /// Instead, measure what a backlog of a million scheduled messages costs
        #[arg(long)]
        backlog: bool,
        /// Instead, measure charts over ten million counted events
        #[arg(long)]
        analytics: bool,
        /// Instead, measure the whole way from the door to another mail server, beside Postfix and Haraka
        #[arg(long)]
        pipeline: bool,
        /// Messages of each run of the pipeline
        #[arg(long, value_name = "N")]
        messages: Option<usize>,
        /// Write the pipeline's figures here, too
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Measure on real bounces how many are understood; lists the ones that are not
    Bounces {
        /// With *.eml and expected.csv [default: ../shared/samples/bounces beside the repository, if it is there]
        folder: Option<PathBuf>,
    },
}

#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Tidy => tidy::run(&repository()),
        Command::Test { arguments } => test::run(&repository(), &arguments).await,
        Command::Ci => ci::run(&repository()).await,
        Command::Bench { analytics: true, .. } => bench::analytics(&repository()).await,
        Command::Bench { postgres, backlog: true, .. } => bench::backlog(&repository(), postgres).await,
        Command::Bench { postgres, pipeline: true, messages, json, .. } => {
            bench::pipeline(&repository(), postgres, json.as_deref(), messages).await
        }
        Command::Bench { seconds, postgres, .. } => bench::run(&repository(), seconds, postgres).await,
        Command::Bounces { folder } => bounces::run(&repository(), folder),
    }
}

/// The top folder of the workspace, wherever the command was typed.
fn repository() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).parent().expect("xtask is a folder of the repository").to_owned()
}
