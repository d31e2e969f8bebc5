//! Benchmark of a million due messages that are suspended: memory, start-up, and the latency of a fresh
//! message.

use anyhow::{Context, ensure};
use serde_json::Value;
use tokio::process::Command;

use super::Bench;
use super::report::Report;
use super::systems::Kind;

pub(super) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    for kind in bench.kinds(Kind::is_ours) {
        eprintln!("a backlog of a million · {}", kind.name());
        let database = if kind == Kind::PostroadOnPostgres { bench.database() } else { None };
        let mut command = Command::new(bench.program("backlog_bench"));
        command.arg("--program").arg(bench.program("postroad"));
        if let Some(database) = &database {
            command.args(["--database", database.url()]);
        }
        let output = command.stderr(std::process::Stdio::inherit()).output().await?;
        ensure!(output.status.success(), "the backlog benchmark failed ({})", output.status);
        let figures: Value = serde_json::from_slice(&output.stdout).context("the figures of the backlog")?;
        let number = |name: &str| figures[name].as_f64().unwrap_or_default();
        report.add(
            "a backlog of 1,000,000 messages, all due",
            kind.name(),
            vec![
                ("accepts_per_second", number("accepts_per_second")),
                ("memory_mib", number("memory_mib")),
                ("more_than_empty_mib", number("more_mib")),
                ("fresh_message_ms", number("fresh_ms")),
                ("memory_after_restart_mib", number("memory_after_restart_mib")),
                ("restart_s", number("restart_s")),
                ("fresh_after_it_ms", number("fresh_after_restart_ms")),
            ],
        );
    }
    Ok(())
}
