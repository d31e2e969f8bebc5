//! Benchmark of webhook posts per second to a receiver on this machine, while the messages go to the sink.

use super::Bench;
use super::load;
use super::report::Report;
use super::sink::Sink;
use super::systems::{Kind, Setup};
use super::usage::Usage;

pub(super) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    for round in 1..=bench.rounds {
        for kind in bench.kinds(Kind::is_ours) {
            eprintln!("webhooks · {} · run {round} of {}", kind.name(), bench.rounds);
            let sink = Sink::start()?;
            let setup = Setup { sink_port: sink.port(), dkim: false, holds: false };
            let system = bench.systems.start(kind, setup)?;
            let Some(postroad) = system.as_postroad() else { continue };
            let messages = bench.messages / 2;
            let count = messages.to_string();
            let usage = Usage::begin(system.roots())?;
            let options = ["--messages", &count, "--recipients", "10"];
            let figures = load::http(bench, "webhooks", postroad, &options).await?;
            sink.wait_for(messages as u64).await?;
            let used = usage.end_when_idle().await?;
            let number = |name: &str| figures[name].as_f64().unwrap_or_default();
            report.add(
                "webhook deliveries, two events a message, all the way from accepting",
                kind.name(),
                vec![
                    ("deliveries_per_second", number("events_per_second")),
                    ("cpu_s_per_1000", used.cpu.as_secs_f64() * 1_000.0 / number("events")),
                    ("peak_memory_mib", used.peak_memory_mib()),
                ],
            );
        }
    }
    Ok(())
}
