//! The pipeline benchmark: in → durable queue → out to a sink, Postroad and its peers on the same work in the same run.
//!
//! Every run starts a fresh system, alternating between the systems; a figure is the median of its runs. A run counts
//! only if the sink got every message.

mod haraka;
mod load;
mod postfix;
mod postroad;
mod report;
mod sink;
mod usage;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use postroad_testkit::Cluster;

use self::report::{Figure, Report};
use self::sink::Sink;
use self::usage::Usage;

pub(crate) use self::report::print;

/// What is sent through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) messages: usize,
    pub(crate) sessions: usize,
    pub(crate) bytes: usize,
    pub(crate) rounds: usize,
}

impl Sizes {
    /// As the goals are stated.
    pub(crate) const FULL: Self = Self { messages: 20_000, sessions: 100, bytes: 10_000, rounds: 3 };
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// `smtp-source` in, without TLS and AUTH.
    Smtp { dkim: bool },
    /// send/message in.
    Http { recipients: usize },
}

impl Work {
    fn name(self) -> String {
        match self {
            Self::Smtp { dkim: false } => "smtp → smtp".to_owned(),
            Self::Smtp { dkim: true } => "smtp → smtp, DKIM RSA-2048".to_owned(),
            Self::Http { recipients: 1 } => "http → smtp".to_owned(),
            Self::Http { recipients } => format!("http → smtp, {recipients} recipients a request"),
        }
    }
}

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Postroad { postgres: bool },
    Postfix,
    Haraka,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Postroad { postgres: false } => "postroad",
            Self::Postroad { postgres: true } => "postroad on postgres",
            Self::Postfix => "postfix",
            Self::Haraka => "haraka",
        }
    }

    /// The peers speak SMTP only, and sign with other programs than their own.
    fn can(self, work: Work) -> bool {
        matches!(self, Self::Postroad { .. }) || matches!(work, Work::Smtp { dkim: false })
    }
}

/// A running system. Stopped when dropped.
trait System {
    /// Where `smtp-source` sends to.
    fn smtp_port(&self) -> u16;
    /// The sender it accepts.
    fn sender(&self) -> String;
    /// The address and key of its HTTP API.
    fn http(&self) -> Option<(String, String)> {
        None
    }
    /// Its processes: CPU and memory of these and all below them are its own.
    fn roots(&self) -> Vec<u32>;
}

/// Measures everything; `release` is the folder with our binaries.
pub(crate) async fn run(release: &Path, sizes: Sizes, postgres: bool) -> anyhow::Result<Report> {
    postfix::ensure_installed()?;
    let haraka_home = haraka::ensure_installed()?;
    let cluster = if postgres { Some(Cluster::start().context("cannot start PostgreSQL")?) } else { None };
    let mut kinds = vec![Kind::Postroad { postgres: false }, Kind::Postfix, Kind::Haraka];
    if postgres {
        kinds.push(Kind::Postroad { postgres: true });
    }
    let works = [
        Work::Smtp { dkim: false },
        Work::Smtp { dkim: true },
        Work::Http { recipients: 1 },
        Work::Http { recipients: 10 },
    ];
    let mut report = Report::default();
    for work in works {
        for round in 0..sizes.rounds {
            for kind in kinds.iter().copied().filter(|kind| kind.can(work)) {
                eprintln!("{} · {} · run {} of {}", work.name(), kind.name(), round + 1, sizes.rounds);
                let database = match kind {
                    Kind::Postroad { postgres: true } => cluster.as_ref().map(Cluster::url),
                    _ => None,
                };
                let figure = measure(release, kind, work, sizes, &haraka_home, database).await?;
                report.add(&work.name(), kind.name(), figure);
            }
        }
    }
    Ok(report)
}

async fn measure(
    release: &Path,
    kind: Kind,
    work: Work,
    sizes: Sizes,
    haraka_home: &Path,
    cluster: Option<&str>,
) -> anyhow::Result<Figure> {
    let sink = Sink::start()?;
    let dkim = work == Work::Smtp { dkim: true };
    let system: Box<dyn System> = match kind {
        Kind::Postroad { .. } => Box::new(postroad::Postroad::start(release, sink.port(), dkim, cluster)?),
        Kind::Postfix => Box::new(postfix::Postfix::start(sink.port())?),
        Kind::Haraka => Box::new(haraka::Haraka::start(haraka_home, sink.port())?),
    };
    // Connections, caches and processes are there before the clock runs.
    let warm_up = Sizes { messages: sizes.messages / 20, ..sizes };
    through(release, &*system, &sink, work, warm_up).await?;
    let usage = Usage::begin(system.roots())?;
    let begun = Instant::now();
    through(release, &*system, &sink, work, sizes).await?;
    let took = begun.elapsed();
    let used = usage.end()?;
    Ok(Figure {
        per_second: sizes.messages as f64 / took.as_secs_f64(),
        cpu_secs_per_1000: used.cpu.as_secs_f64() * 1_000.0 / sizes.messages as f64,
        memory_mib: used.peak_memory_bytes as f64 / f64::from(1 << 20),
    })
}

/// Sends all messages and waits until the sink has them.
async fn through(
    release: &Path,
    system: &dyn System,
    sink: &Sink,
    work: Work,
    sizes: Sizes,
) -> anyhow::Result<()> {
    let wanted = sink.messages() + sizes.messages as u64;
    match work {
        Work::Smtp { .. } => load::smtp(system.smtp_port(), &system.sender(), sizes).await?,
        Work::Http { recipients } => {
            let (url, key) = system.http().context("this system has an HTTP API")?;
            load::http(release, &url, &key, &system.sender(), recipients, sizes).await?;
        }
    }
    let patience = Instant::now() + Duration::from_mins(5);
    while sink.messages() < wanted {
        ensure!(Instant::now() < patience, "the sink got {} of {wanted} messages", sink.messages());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Long enough for one too many.
    tokio::time::sleep(Duration::from_millis(50)).await;
    ensure!(sink.messages() == wanted, "the sink got {} messages, {wanted} were sent", sink.messages());
    Ok(())
}

/// A port that nobody has at the moment.
fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Until somebody listens there.
fn wait_for_port(port: u16) -> anyhow::Result<()> {
    let patience = Instant::now() + Duration::from_secs(30);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        ensure!(Instant::now() < patience, "nobody listens on port {port}");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
