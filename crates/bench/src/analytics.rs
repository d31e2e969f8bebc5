//! Benchmark of charts over ten million counted events of one server in 32 days, on SQLite and over HTTP.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use postroad_model::{Clock, SystemClock};
use postroad_testkit::Daemon;
use postroad_testkit::http::Client;
use serde_json::json;
use tokio::process::Command;

use super::Bench;
use super::report::Report;

/// Calls per chart.
const REPETITIONS: usize = 20;

pub(super) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::TempDir::new()?;
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().context("a plain path")?;
    let arguments = ["dev", "--json", "--http-port", "0", "--data-dir", data_dir];
    // Creates the installation and its first server, whose analytics are queried.
    let mut daemon = Daemon::start(&bench.program("postroad"), arguments, &[]);
    ensure!(daemon.terminate().success(), "the server does not stop");
    let mut fill = Command::new(bench.program("analytics_fill"));
    fill.arg("--database").arg(format!("sqlite:{data_dir}/postroad.db"));
    ensure!(fill.status().await?.success(), "the store could not be filled");

    let daemon = Daemon::start(&bench.program("postroad"), arguments, &[]);
    let text = |name: &str| daemon.ready()[name].as_str().unwrap_or_default();
    let client = Client::new(text("url"));
    let charts = [
        ("30 days by day", "timeseries", json!({})),
        ("30 days by day, Europe/Berlin", "timeseries", json!({"timezone": "Europe/Berlin"})),
        ("30 days by hour", "timeseries", json!({"granularity": "hour", "from": days_ago(30)})),
        ("a day by minute", "timeseries", json!({"granularity": "minute", "from": days_ago(1)})),
        ("top recipient domains of 30 days", "top", json!({"dimension": "recipient_domain"})),
        ("30 days by day and tag", "timeseries", json!({"dimensions": ["tag"]})),
        (
            "30 days by day and tag, Europe/Berlin",
            "timeseries",
            json!({"dimensions": ["tag"], "timezone": "Europe/Berlin"}),
        ),
        (
            "30 days by day and tag, Asia/Kolkata",
            "timeseries",
            json!({"dimensions": ["tag"], "timezone": "Asia/Kolkata"}),
        ),
        (
            "a day by minute and tag",
            "timeseries",
            json!({"granularity": "minute", "from": days_ago(1), "dimensions": ["tag"]}),
        ),
        (
            "30 days by day, tag and provider",
            "timeseries",
            json!({"dimensions": ["tag", "recipient_provider"]}),
        ),
        ("top tags of 30 days", "top", json!({"dimension": "tag"})),
        ("summary of 30 days, one tag", "summary", json!({"tag": "kind 1"})),
    ];
    for (name, endpoint, body) in charts {
        for _ in 0..REPETITIONS {
            let begun = Instant::now();
            let reply = client
                .post_json(&format!("/api/v1/analytics/{endpoint}"), Some(text("api_key")), &body)
                .await?;
            let took = begun.elapsed().as_secs_f64() * 1e3;
            ensure!(reply.json()["status"] == "success", "{name}: {}", reply.text());
            report.add(&format!("analytics, ten million events: {name}"), "postroad", vec![("ms", took)]);
        }
    }
    Ok(())
}

fn days_ago(days: u64) -> String {
    SystemClock.now().minus(Duration::from_hours(24 * days)).to_rfc3339()
}
