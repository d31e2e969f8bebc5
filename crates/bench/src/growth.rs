//! Benchmark of growth: the cost of a message on an installation that already stores 1, 10 and 100 times the messages
//! of one run, and then with a backlog of scheduled messages.

use std::time::{Duration, Instant};

use anyhow::Context;
use postroad_model::{Clock, SystemClock};

use super::Bench;
use super::load::{self, Content};
use super::report::{Figures, Report};
use super::sink::Sink;
use super::systems::{Kind, Setup, System};
use super::usage::Usage;

/// Recipients per request.
const RECIPIENTS: &str = "50";
/// Numbers of messages stored before, as multiples of the messages of a run.
const STEPS: [usize; 3] = [1, 10, 100];

pub(super) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    for kind in bench.kinds(Kind::is_ours) {
        let sink = Sink::start()?;
        let system =
            bench.systems.start(kind, Setup { sink_port: sink.port(), dkim: false, holds: false })?;
        let mut stored = 0;
        for step in STEPS {
            let before = step * bench.messages;
            eprintln!("{before} messages stored before · {}", kind.name());
            send(bench, &*system, &sink, before.saturating_sub(stored), None).await?;
            let work = format!("smtp → smtp, {before} messages stored before");
            for _ in 0..bench.rounds {
                report.add(&work, kind.name(), run(bench, &*system, &sink).await?);
            }
            stored = before.max(stored) + bench.rounds * bench.messages;
        }
        let waiting = 50 * bench.messages;
        eprintln!("a backlog of {waiting} scheduled messages · {}", kind.name());
        let tomorrow = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
        send(bench, &*system, &sink, waiting, Some(&tomorrow)).await?;
        for _ in 0..bench.rounds {
            let work = format!("smtp → smtp, also {waiting} scheduled messages waiting");
            report.add(&work, kind.name(), run(bench, &*system, &sink).await?);
        }
    }
    Ok(())
}

/// Sends with many recipients per request, which only prepares the measurement.
async fn send(
    bench: &Bench,
    system: &dyn System,
    sink: &Sink,
    messages: usize,
    send_at: Option<&str>,
) -> anyhow::Result<()> {
    if messages == 0 {
        return Ok(());
    }
    let postroad = system.as_postroad().context("only Postroad does this")?;
    let wanted = sink.messages() + if send_at.is_none() { messages as u64 } else { 0 };
    let count = messages.to_string();
    let mut options = vec!["--messages", &count, "--recipients", RECIPIENTS, "--callers", "8"];
    options.extend(send_at.into_iter().flat_map(|at| ["--send-at", at]));
    load::http(bench, "http", postroad, &options).await?;
    sink.wait_for(wanted).await?;
    Ok(())
}

async fn run(bench: &Bench, system: &dyn System, sink: &Sink) -> anyhow::Result<Figures> {
    let wanted = sink.messages() + bench.messages as u64;
    let usage = Usage::begin(system.roots())?;
    let begun = Instant::now();
    load::smtp_source(system.smtp(), &system.sender(), bench.messages, Content::Filling).await?;
    let sending = begun.elapsed();
    let took = sending + sink.wait_for(wanted).await?;
    let used = usage.end_when_idle().await?;
    Ok(vec![
        ("per_second", bench.messages as f64 / took.as_secs_f64()),
        ("cpu_s_per_1000", used.cpu.as_secs_f64() * 1_000.0 / bench.messages as f64),
        ("peak_memory_mib", used.peak_memory_mib()),
    ])
}
