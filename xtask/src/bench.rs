//! The accept benchmark: how many messages a second are on stable storage, and how long a caller waits for it.
//! First the store alone, then the whole way through the HTTP port, each next to what the disk can flush.

#![expect(clippy::print_stdout, reason = "the figures are this command's answer")]

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use postroad_testkit::http::Client;
use postroad_testkit::postgres::Database;
use postroad_testkit::{Cluster, Daemon};
use serde_json::{Value, json};

use crate::programs;
use crate::test::cargo;

const CALLERS: [usize; 4] = [1, 16, 128, 1_024];

/// Runs on SQLite, and on a private PostgreSQL when `postgres` is set.
pub(crate) async fn run(repository: &Path, seconds: u64, postgres: bool) -> anyhow::Result<ExitCode> {
    let mut build = cargo(repository);
    build.args([
        "build",
        "--release",
        "-p",
        "postroad",
        "-p",
        "postroad-store",
        "--example",
        "accept_bench",
        "--bins",
    ]);
    ensure!(build.status().await?.success(), "the build failed");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository.join("target"), Into::into);
    let release = target.join("release");
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

async fn store_alone(release: &Path, database: &str) -> anyhow::Result<()> {
    println!("\nstore.accept on {}", engine(database));
    let mut bench = tokio::process::Command::new(release.join("examples/accept_bench"));
    ensure!(bench.args(["--database", database]).status().await?.success(), "the store benchmark failed");
    Ok(())
}

fn engine(database: &str) -> &str {
    database.split(':').next().unwrap_or(database)
}

async fn over_http(
    release: &Path,
    data_dir: &Path,
    database: Option<&str>,
    seconds: u64,
) -> anyhow::Result<()> {
    println!("\nPOST send/message on {} (10 kB bodies)", database.map_or("sqlite", engine));
    println!("{:>8} {:>12} {:>10} {:>10} {:>8}", "callers", "accepts/s", "p50 ms", "p99 ms", "failed");
    let program = release.join("postroad");
    let data_dir = data_dir.to_str().context("a plain path")?;
    let envs: Vec<_> = database.map(|url| ("POSTROAD_DATABASE", url)).into_iter().collect();
    let daemon =
        Daemon::start(&program, ["dev", "--json", "--http-port", "0", "--data-dir", data_dir], &envs);
    let text = |name: &str| daemon.ready()[name].as_str().unwrap_or_default().to_owned();
    let (url, key) = (text("url"), text("api_key"));
    for callers in CALLERS {
        level(&url, &key, callers, Duration::from_secs(seconds)).await?;
    }
    Ok(())
}

/// `callers` clients with a connection each, as fast as they are answered.
async fn level(url: &str, key: &str, callers: usize, time: Duration) -> anyhow::Result<()> {
    let body = Arc::new(request());
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    let begun = Instant::now();
    for _ in 0..callers {
        let (client, key, body, stop) =
            (Client::new(url), key.to_owned(), Arc::clone(&body), Arc::clone(&stop));
        tasks.spawn(async move {
            let (mut waits, mut failed) = (Vec::new(), 0_u64);
            while !stop.load(Ordering::Relaxed) {
                let asked = Instant::now();
                match client.post_json("/api/v1/send/message", Some(&key), &body).await {
                    Ok(reply) if reply.status == 200 => waits.push(asked.elapsed()),
                    _ => failed += 1,
                }
            }
            (waits, failed)
        });
    }
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let results = tasks.join_all().await;
    let took = begun.elapsed();
    let failed: u64 = results.iter().map(|(_, failed)| failed).sum();
    let mut waits: Vec<Duration> = results.into_iter().flat_map(|(waits, _)| waits).collect();
    ensure!(!waits.is_empty(), "no request was answered");
    waits.sort_unstable();
    let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
    let rate = waits.len() as f64 / took.as_secs_f64();
    println!("{callers:>8} {rate:>12.0} {:>10.2} {:>10.2} {failed:>8}", at(0.5), at(0.99));
    Ok(())
}

/// About 10 kB of text that compresses like mail does.
fn request() -> Value {
    let words = ["order", "shipped", "total", "thank", "you", "for", "your", "purchase", "invoice", "number"];
    let numbered = (0..1_700_usize).flat_map(|n| [words[n * 7 % 10].to_owned(), (n * 7_919 % 1_000).to_string()]);
    let text = numbered.collect::<Vec<_>>().join(" ");
    json!({
        "to": ["someone@example.com"],
        "from": "Shop <shop@example.test>",
        "subject": "Your order",
        "html_body": &text[..10_000],
    })
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
