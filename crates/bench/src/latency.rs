//! Benchmark of latency from the accepted request to DATA at the receiver, at 500 messages a second.

use super::Bench;
use super::load;
use super::report::Report;
use super::systems::{Kind, Setup, free_port};

const RATE: &str = "500";
const MESSAGES: &str = "5000";

pub(super) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    for round in 1..=bench.rounds {
        for kind in bench.kinds(Kind::is_ours) {
            eprintln!("accept to DATA · {} · run {round} of {}", kind.name(), bench.rounds);
            let sink_port = free_port()?;
            let system = bench.systems.start(kind, Setup { sink_port, dkim: true, holds: false })?;
            let Some(postroad) = system.as_postroad() else { continue };
            let port = sink_port.to_string();
            let options = ["--sink-port", &port, "--rate", RATE, "--messages", MESSAGES];
            let figures = load::http(bench, "latency", postroad, &options).await?;
            let number = |name: &str| figures[name].as_f64().unwrap_or_default();
            report.add(
                &format!("accept to the other server's DATA, {RATE}/s, signed"),
                kind.name(),
                vec![
                    ("p50_ms", number("p50_ms")),
                    ("p99_ms", number("p99_ms")),
                    ("max_ms", number("max_ms")),
                ],
            );
        }
    }
    Ok(())
}
