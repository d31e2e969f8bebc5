//! Benchmark of `cargo xtask bench`: measures Postroad on one machine. For work that its peers Postfix and Haraka can
//! do as well, measures them in the same run.
//!
//! Each part adds its figures to one report, printed as tables and written as JSON. The programs that parts start
//! (`postroad` and the load generators of `bin/`) are in the same folder as this program: `cargo xtask bench` builds
//! all of them first.

mod accept;
mod accounts;
mod analytics;
mod backlog;
mod growth;
mod held;
mod latency;
mod load;
mod micro;
mod pipeline;
mod portal;
mod report;
mod sink;
mod systems;
mod usage;
mod webhooks;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::{Parser, ValueEnum};
use postroad_test_programs::install;
use postroad_testkit::Cluster;
use postroad_testkit::postgres::Database;

use self::report::Report;
use self::systems::{Kind, Systems};

/// `--messages` is rounded up to a multiple of this: the warm-up sends a twentieth of them, in requests of up to ten
/// recipients, which must all be full.
const MESSAGES_STEP: usize = 200;

/// Measures Postroad beside Postfix and Haraka; docs/performance.md explains the figures.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Options {
    /// What to measure [default: everything]
    parts: Vec<Part>,
    /// Leave out PostgreSQL (a private server)
    #[arg(long)]
    no_postgres: bool,
    /// Leave out Postfix and Haraka
    #[arg(long)]
    no_peers: bool,
    /// Another build of `postroad` to compare with, in the pipeline
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// Messages of each run of the pipeline, in steps of 200
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    messages: usize,
    /// Messages that the pages of the portal show
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    portal_messages: usize,
    /// Data folder for these messages; it is kept, and filled only once
    #[arg(long, value_name = "FOLDER")]
    portal_data: Option<PathBuf>,
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
    /// SMTP or HTTP in, a durable queue, SMTP out to a sink, compared with Postfix and Haraka
    Pipeline,
    /// Accepting only: rates by number of callers, and latencies at 1,000 messages a second, compared with Postfix and Haraka
    Accept,
    /// From the accepted request to the other server's DATA
    Latency,
    /// A million messages that are due and suspended: memory, start, and latency of a fresh message
    Backlog,
    /// SMTP in and out after up to 100 times the messages of a run were stored, then while scheduled messages wait
    Growth,
    /// Deliveries of webhooks a second
    Webhooks,
    /// Charts over ten million counted events
    Analytics,
    /// 100,000 held messages cancelled by one call, and latencies of single sends meanwhile
    Held,
    /// Pages of the portal over ten million messages
    Portal,
    /// Calls by random keys with 10 servers and 100 keys, and with 10,000 servers and 100,000 keys
    Accounts,
    /// The hot pure parts by themselves: compose, DKIM, link rewriting, SMTP
    Micro,
}

/// State shared by the parts.
struct Bench {
    /// Folder of `postroad` and the load generators.
    programs: PathBuf,
    systems: Systems,
    cluster: Option<Cluster>,
    messages: usize,
    rounds: usize,
}

impl Bench {
    fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// Fresh database, if PostgreSQL is measured.
    fn database(&self) -> Option<Database> {
        self.cluster.as_ref().map(|cluster| Database::create_on(cluster.url()))
    }

    /// The systems of this run that can do the work.
    fn kinds(&self, can: impl Fn(Kind) -> bool) -> Vec<Kind> {
        self.systems.kinds().iter().copied().filter(|kind| can(*kind)).collect()
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let options = &Options::parse();
    let this = std::env::current_exe()?;
    let programs = this.parent().context("a program lies in a folder")?.to_owned();
    let target = programs.parent().context("the folder of a profile lies in the target folder")?.to_owned();
    let is_wanted = |part: Part| options.parts.is_empty() || options.parts.contains(&part);
    let needs_sink = [Part::Pipeline, Part::Accept, Part::Latency, Part::Webhooks, Part::Growth]
        .into_iter()
        .any(is_wanted);
    let cluster = if options.no_postgres {
        None
    } else {
        install::ensure()?;
        Some(Cluster::start_durable().context("cannot start PostgreSQL")?)
    };
    let systems =
        Systems::find(&programs, needs_sink, !options.no_peers, options.before.as_deref(), cluster.as_ref())?;
    let (messages, rounds) = (options.messages.max(1).next_multiple_of(MESSAGES_STEP), options.rounds.max(1));
    let bench = Bench { programs, systems, cluster, messages, rounds };

    let mut report = Report::new(flushes_per_second()?);
    let json = options.json.clone().unwrap_or_else(|| target.join("bench.json"));
    let mut failed = Vec::new();
    for part in Part::value_variants().iter().copied().filter(|part| is_wanted(*part)) {
        if let Err(error) = measure(part, &bench, &mut report, options).await {
            eprintln!("{part:?} failed: {error:#}");
            failed.push(part);
        }
        // Written after each part, so that figures survive a later failure.
        std::fs::write(&json, format!("{:#}\n", report.to_json()))?;
    }
    report.print();
    eprintln!("\nwritten to {}", json.display());
    ensure!(failed.is_empty(), "not all was measured: {failed:?}");
    Ok(())
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
        Part::Held => held::measure(bench, report).await,
        Part::Portal => {
            portal::measure(bench, report, options.portal_messages, options.portal_data.as_deref()).await
        }
        Part::Accounts => accounts::measure(bench, report).await,
        Part::Micro => micro::measure(bench, report, options.instructions).await,
    }
}

/// Measures the disk: appends of 4 kB, each followed by fdatasync.
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
