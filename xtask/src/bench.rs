//! The accept benchmark: how many messages a second are on stable storage, and how long a caller waits for it.
//! First the store alone, then the whole way through the HTTP port, each next to what the disk can flush.

#![expect(clippy::print_stdout, reason = "the figures are this command's answer")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use postroad_testkit::postgres::Database;
use postroad_testkit::{Cluster, Daemon};

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

/// Everything in release; returns the folder it is in.
async fn build(repository: &Path) -> anyhow::Result<PathBuf> {
    let mut build = cargo(repository);
    build.args(["build", "--release", "-p", "postroad", "-p", "postroad-store", "--bins", "--examples"]);
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
