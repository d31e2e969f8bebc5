//! `cargo xtask bench`: Postroad and its peers on the same work, in one run on one machine.
//!
//! A part is what is measured; its figures go into one report, printed as tables and written as JSON.

mod accept;
mod analytics;
mod backlog;
mod growth;
mod latency;
mod load;
mod micro;
mod pipeline;
mod report;
mod sink;
mod systems;
mod usage;
mod webhooks;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use postroad_testkit::Cluster;
use postroad_testkit::postgres::Database;

use self::report::Report;
use self::systems::{Kind, Systems};
use crate::programs;
use crate::test::cargo;

/// A twentieth of the messages, sent ten in a request, comes out even.
const MESSAGES_STEP: usize = 200;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What to measure [default: everything]
    parts: Vec<Part>,
    /// Leave out PostgreSQL (a private server)
    #[arg(long)]
    no_postgres: bool,
    /// Leave out Postfix and Haraka
    #[arg(long)]
    no_peers: bool,
    /// Messages of each run of the pipeline, in steps of 200
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    messages: usize,
    /// Runs of each system on each work; the median counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Count the instructions of the micro-benchmarks, too (valgrind; slow)
    #[arg(long)]
    instructions: bool,
    /// Where the figures go as JSON [default: bench.json in the target folder]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// SMTP or HTTP in, a durable queue, SMTP out to a sink, beside Postfix and Haraka
    Pipeline,
    /// Accepting only: rates by callers, and waits at 1,000 messages a second, beside Postfix and Haraka
    Accept,
    /// From the accepted request to the other server's DATA
    Latency,
    /// A million messages that are due and suspended: memory, start, and a fresh message behind them
    Backlog,
    /// The same work behind a history and a backlog a hundred times as large
    Growth,
    /// Deliveries of webhooks a second
    Webhooks,
    /// Charts over ten million counted events
    Analytics,
    /// The hot pure parts by themselves: compose, DKIM, link rewriting, SMTP
    Micro,
}

/// What the parts share.
struct Bench {
    release: PathBuf,
    systems: Systems,
    cluster: Option<Cluster>,
    messages: usize,
    rounds: usize,
}

impl Bench {
    /// A tool of ours, built in release.
    fn example(&self, name: &str) -> PathBuf {
        self.release.join("examples").join(name)
    }

    fn program(&self) -> PathBuf {
        self.release.join("postroad")
    }

    /// A fresh one, if PostgreSQL is measured.
    fn database(&self) -> Option<Database> {
        self.cluster.as_ref().map(|cluster| Database::create_on(cluster.url()))
    }

    /// Ours on both engines, and the peers that can do this.
    fn kinds(&self, can: impl Fn(Kind) -> bool) -> Vec<Kind> {
        self.systems.kinds().iter().copied().filter(|kind| can(*kind)).collect()
    }
}

pub(crate) async fn run(repository: &Path, options: &Options) -> anyhow::Result<ExitCode> {
    let release = build(repository).await?;
    let is_wanted = |part: Part| options.parts.is_empty() || options.parts.contains(&part);
    let has_sink = [Part::Pipeline, Part::Accept, Part::Latency, Part::Webhooks, Part::Growth]
        .into_iter()
        .any(is_wanted);
    let cluster = if options.no_postgres {
        None
    } else {
        programs::ensure()?;
        Some(Cluster::start_durable().context("cannot start PostgreSQL")?)
    };
    let systems = Systems::find(&release, has_sink, !options.no_peers, cluster.as_ref())?;
    let (messages, rounds) = (options.messages.max(1).next_multiple_of(MESSAGES_STEP), options.rounds.max(1));
    let bench = Bench { release, systems, cluster, messages, rounds };

    let mut report = Report::new(flushes_per_second()?);
    let json = options.json.clone().unwrap_or_else(|| target(repository).join("bench.json"));
    let mut failed = Vec::new();
    for part in Part::value_variants().iter().copied().filter(|part| is_wanted(*part)) {
        if let Err(error) = measure(part, &bench, &mut report, options).await {
            eprintln!("{part:?} failed: {error:#}");
            failed.push(part);
        }
        // What was measured is kept, whatever becomes of the rest.
        std::fs::write(&json, format!("{:#}\n", report.to_json()))?;
    }
    report.print();
    eprintln!("\nwritten to {}", json.display());
    ensure!(failed.is_empty(), "not all was measured: {failed:?}");
    Ok(ExitCode::SUCCESS)
}

async fn measure(part: Part, bench: &Bench, report: &mut Report, options: &Options) -> anyhow::Result<()> {
    match part {
        Part::Pipeline => pipeline::measure(bench, report).await,
        Part::Accept => accept::measure(bench, report).await,
        Part::Latency => latency::measure(bench, report).await,
        Part::Backlog => backlog::measure(bench, report).await,
        Part::Growth => growth::measure(bench, report).await,
        Part::Webhooks => webhooks::measure(bench, report).await,
        Part::Analytics => analytics::measure(bench, report).await,
        Part::Micro => micro::measure(bench, report, options.instructions).await,
    }
}

/// Everything in release; returns the folder it is in.
async fn build(repository: &Path) -> anyhow::Result<PathBuf> {
    let mut build = cargo(repository);
    build.args(["build", "--release", "-p", "postroad", "-p", "postroad-store", "--bins", "--examples"]);
    ensure!(build.status().await?.success(), "the build failed");
    Ok(target(repository).join("release"))
}

fn target(repository: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository.join("target"), PathBuf::from)
}

/// What the disk can do: appends of 4 kB, each followed by fdatasync.
fn flushes_per_second() -> anyhow::Result<f64> {
    let mut file = tempfile::tempfile()?;
    let (begun, mut count) = (Instant::now(), 0_u32);
    while begun.elapsed() < Duration::from_secs(2) {
        file.write_all(&[b'x'; 4_096])?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}
