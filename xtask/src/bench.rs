//! The accept benchmark: how many messages a second are on stable storage, and how long a caller waits for it.
//! First the store alone, then the whole way through the HTTP port, each next to what the disk can flush.

#![expect(clippy::print_stdout, reason = "the figures are this command's answer")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use postroad_model::{Clock, SystemClock};
use postroad_testkit::http::Client;
use postroad_testkit::postgres::Database;
use postroad_testkit::{Cluster, Daemon};
use serde_json::json;

use crate::programs;
use crate::test::cargo;

/// Runs on SQLite, and on a private PostgreSQL when `postgres` is set.
pub(crate) async fn run(repository: &Path, seconds: u64, postgres: bool) -> anyhow::Result<ExitCode> {
    let release = build(repository).await?;
    let folder = tempfile::TempDir::new()?;
    println!("flushes of this disk: {:.0}/s (append 4 kB, fdatasync)", flushes_per_second(folder.path())?);

    let sqlite = format!("sqlite:{}", folder.path().join("store.db").display());
    store_alone(&release, &sqlite).await?;
    over_http(&release, &folder.path().join("http"), None, seconds).await?;
    if postgres {
        programs::ensure()?;
        let cluster = Cluster::start().context("cannot start PostgreSQL")?;
        let database = Database::create_on(cluster.url());
        store_alone(&release, database.url()).await?;
        let database = Database::create_on(cluster.url());
        over_http(&release, &folder.path().join("node"), Some(database.url()), seconds).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A million messages for tomorrow: memory, start-up, and a fresh message behind them.
pub(crate) async fn backlog(repository: &Path, postgres: bool) -> anyhow::Result<ExitCode> {
    let release = build(repository).await?;
    let mut bench = tokio::process::Command::new(release.join("examples/backlog_bench"));
    bench.arg("--program").arg(release.join("postroad"));
    println!("backlog on sqlite");
    ensure!(bench.status().await?.success(), "the backlog benchmark failed");
    if postgres {
        programs::ensure()?;
        let cluster = Cluster::start().context("cannot start PostgreSQL")?;
        let database = Database::create_on(cluster.url());
        println!("\nbacklog on postgres");
        ensure!(
            bench.args(["--database", database.url()]).status().await?.success(),
            "the backlog benchmark failed"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Charts over ten million events of one server in 32 days, asked over HTTP.
pub(crate) async fn analytics(repository: &Path) -> anyhow::Result<ExitCode> {
    let release = build_with(repository, &["--example", "analytics_fill"]).await?;
    let folder = tempfile::TempDir::new()?;
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().context("a plain path")?;
    let arguments = ["dev", "--json", "--http-port", "0", "--data-dir", data_dir];
    // Makes the installation with its first server, which is the one that is asked for.
    let mut daemon = Daemon::start(&release.join("postroad"), arguments, &[]);
    ensure!(daemon.terminate().success(), "the server does not stop");
    let mut fill = tokio::process::Command::new(release.join("examples/analytics_fill"));
    fill.arg("--database").arg(format!("sqlite:{data_dir}/postroad.db"));
    ensure!(fill.status().await?.success(), "the store could not be filled");

    let daemon = Daemon::start(&release.join("postroad"), arguments, &[]);
    let text = |name: &str| daemon.ready()[name].as_str().unwrap_or_default();
    let client = Client::new(text("url"));
    println!("{:<48} {:>9} {:>9} {:>9}", "question, over HTTP", "first ms", "median ms", "max ms");
    let questions = [
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
    for (name, endpoint, body) in questions {
        let mut taken = Vec::new();
        for _ in 0..20 {
            let begun = Instant::now();
            let reply = client
                .post_json(&format!("/api/v1/analytics/{endpoint}"), Some(text("api_key")), &body)
                .await?;
            taken.push(begun.elapsed().as_secs_f64() * 1e3);
            ensure!(reply.json()["status"] == "success", "{name}: {}", reply.text());
        }
        let first = taken[0];
        taken.sort_by(f64::total_cmp);
        println!("{name:<48} {first:>9.1} {:>9.1} {:>9.1}", taken[10], taken[19]);
    }
    Ok(ExitCode::SUCCESS)
}

fn days_ago(days: u64) -> String {
    SystemClock.now().minus(Duration::from_hours(24 * days)).to_rfc3339()
}

/// Everything in release; returns the folder it is in.
async fn build(repository: &Path) -> anyhow::Result<PathBuf> {
    build_with(repository, &["--examples"]).await
}

/// The program, and of the examples only these.
async fn build_with(repository: &Path, examples: &[&str]) -> anyhow::Result<PathBuf> {
    let mut build = cargo(repository);
    build.args(["build", "--release", "-p", "postroad", "-p", "postroad-store", "--bins"]).args(examples);
    ensure!(build.status().await?.success(), "the build failed");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository.join("target"), PathBuf::from);
    Ok(target.join("release"))
}

async fn store_alone(release: &Path, database: &str) -> anyhow::Result<()> {
    println!("\nstore.accept on {}", engine(database));
    let mut bench = tokio::process::Command::new(release.join("examples/accept_bench"));
    ensure!(bench.args(["--database", database]).status().await?.success(), "the store benchmark failed");
    Ok(())
}

fn engine(database: &str) -> &str {
    database.split(':').next().unwrap_or(database)
}

/// The load comes from a release build too, or it would be the slower side.
async fn over_http(
    release: &Path,
    data_dir: &Path,
    database: Option<&str>,
    seconds: u64,
) -> anyhow::Result<()> {
    println!("\nPOST send/message on {}", database.map_or("sqlite", engine));
    let program = release.join("postroad");
    let data_dir = data_dir.to_str().context("a plain path")?;
    let envs: Vec<_> = database.map(|url| ("POSTROAD_DATABASE", url)).into_iter().collect();
    let daemon =
        Daemon::start(&program, ["dev", "--json", "--http-port", "0", "--data-dir", data_dir], &envs);
    let text = |name: &str| daemon.ready()[name].as_str().unwrap_or_default();
    let mut load = tokio::process::Command::new(release.join("examples/http_bench"));
    load.args(["--url", text("url"), "--key", text("api_key"), "--seconds", &seconds.to_string()]);
    ensure!(load.status().await?.success(), "the HTTP benchmark failed");
    Ok(())
}

fn flushes_per_second(folder: &Path) -> anyhow::Result<f64> {
    let mut file = std::fs::File::create(folder.join("flush"))?;
    let (begun, mut count) = (Instant::now(), 0_u32);
    while begun.elapsed() < Duration::from_secs(2) {
        file.write_all(&[b'x'; 4_096])?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}
