//! Benchmark of the whole pipeline: in → durable queue → out to a sink.
//!
//! Every run starts a fresh system, alternating between the systems; a figure is the median of its runs. A run
//! counts only if the sink received as many messages as were sent.

use std::time::{Duration, Instant};

use anyhow::Context;

use super::Bench;
use super::load::{self, BYTES, Content, SESSIONS};
use super::report::{Figures, Report};
use super::sink::Sink;
use super::systems::{Kind, Setup, System};
use super::usage::Usage;

/// Work to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// `smtp-source` in, without TLS and AUTH.
    Smtp { content: Content, dkim: bool },
    /// As applications send: the port with STARTTLS and a password.
    SmtpTls,
    /// send/message in.
    Http { recipients: usize },
}

impl Work {
    const ALL: [Self; 6] = [
        Self::Smtp { content: Content::Filling, dkim: false },
        Self::Smtp { content: Content::Text, dkim: false },
        Self::Smtp { content: Content::Filling, dkim: true },
        Self::SmtpTls,
        Self::Http { recipients: 1 },
        Self::Http { recipients: 10 },
    ];

    fn name(self) -> String {
        match self {
            Self::Smtp { content, dkim } => {
                let content = if content == Content::Text { ", text" } else { "" };
                format!("smtp → smtp{content}{}", if dkim { ", DKIM RSA-2048" } else { "" })
            }
            Self::SmtpTls => "smtp with STARTTLS and AUTH → smtp".to_owned(),
            Self::Http { recipients: 1 } => "http → smtp".to_owned(),
            Self::Http { recipients } => format!("http → smtp, {recipients} recipients a request"),
        }
    }

    /// Whether a system does this work: Postfix and Haraka accept only SMTP, and are set up without signing and without
    /// passwords.
    fn is_done_by(self, kind: Kind) -> bool {
        !kind.is_peer() || matches!(self, Self::Smtp { dkim: false, .. })
    }
}

pub(super) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    for work in Work::ALL {
        for round in 1..=bench.rounds {
            for kind in bench.kinds(|kind| work.is_done_by(kind)) {
                eprintln!("{} · {} · run {round} of {}", work.name(), kind.name(), bench.rounds);
                let figures = run(bench, kind, work).await?;
                report.add(&work.name(), kind.name(), figures);
            }
        }
    }
    Ok(())
}

async fn run(bench: &Bench, kind: Kind, work: Work) -> anyhow::Result<Figures> {
    let sink = Sink::start()?;
    let setup =
        Setup { sink_port: sink.port(), dkim: matches!(work, Work::Smtp { dkim: true, .. }), holds: false };
    let system = bench.systems.start(kind, setup)?;
    // Warm-up: opens connections, fills caches and starts processes before the clock runs.
    send_through(bench, &*system, &sink, work, bench.messages / 20).await?;
    let usage = Usage::begin(system.roots())?;
    let took = send_through(bench, &*system, &sink, work, bench.messages).await?;
    let used = usage.end_when_idle().await?;
    Ok(vec![
        ("per_second", bench.messages as f64 / took.as_secs_f64()),
        ("cpu_s_per_1000", used.cpu.as_secs_f64() * 1_000.0 / bench.messages as f64),
        ("peak_memory_mib", used.peak_memory_mib()),
    ])
}

/// Sends all messages; returns the time until the sink had them.
async fn send_through(
    bench: &Bench,
    system: &dyn System,
    sink: &Sink,
    work: Work,
    messages: usize,
) -> anyhow::Result<Duration> {
    let wanted = sink.messages() + messages as u64;
    let ours = || system.as_postroad().context("only Postroad does this");
    let (count, sessions, bytes) = (messages.to_string(), SESSIONS.to_string(), BYTES.to_string());
    let begun = Instant::now();
    match work {
        Work::Smtp { content, .. } => {
            load::smtp_source(system.smtp(), &system.sender(), messages, content).await?;
        }
        Work::SmtpTls => {
            let postroad = ours()?;
            let (address, key) = (postroad.submission()?.to_string(), postroad.text("api_key"));
            let (secret, sender) = (postroad.text("api_secret"), system.sender());
            let arguments = ["smtp", "--address", &address, "--tls", "starttls", "--username", &key];
            let more = ["--password", &secret, "--from", &sender, "--messages", &count];
            let size = ["--sessions", &sessions, "--bytes", &bytes];
            load::run_tool(bench, &[&arguments[..], &more, &size].concat()).await?;
        }
        Work::Http { recipients } => {
            let recipients = recipients.to_string();
            let arguments = ["--recipients", &recipients, "--messages", &count, "--callers", &sessions];
            load::http(bench, "http", ours()?, &[&arguments[..], &["--bytes", &bytes]].concat()).await?;
        }
    }
    let sending = begun.elapsed();
    Ok(sending + sink.wait_for(wanted).await?)
}
