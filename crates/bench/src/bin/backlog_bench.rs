//! Measures the cost of a deep backlog: `backlog_bench --program POSTROAD [--messages N] [--database URL]`.
//!
//! Sends N messages to a suspended domain, so that all of them are due and wait. Measures the service's memory,
//! the time of a restart, and the time of a fresh message to the inbox. Prints one line of JSON.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use postroad_model::{Clock, SystemClock};
use postroad_testkit::Daemon;
use postroad_testkit::http::Client;
use serde_json::{Value, json};

const RECIPIENTS_PER_SEND: usize = 50;
const CALLERS: usize = 16;
const WAITING_DOMAIN: &str = "waiting.example";
/// Wait after a start, so that the service has read its queue.
const SETTLE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    let program = option("--program").context("--program is missing")?;
    let messages: usize = option("--messages").map_or(Ok(1_000_000), |text| text.parse())?;
    let folder = tempfile::TempDir::new()?;
    let bench = Bench {
        program: Path::new(program),
        data_dir: folder.path().to_str().context("a plain path")?.to_owned(),
        envs: option("--database").map(|url| ("POSTROAD_DATABASE", url.as_str())).into_iter().collect(),
    };

    let (daemon, _) = bench.start();
    bench.suspend()?;
    let fresh_when_empty = send_fresh(&daemon).await?;
    let mib_before = memory_mib(&daemon)?;
    let begun = Instant::now();
    send_waiting(&daemon, messages / RECIPIENTS_PER_SEND).await?;
    let took = begun.elapsed();
    let fresh = send_fresh(&daemon).await?;
    let mib_after = memory_mib(&daemon)?;
    drop(daemon);

    let (daemon, restart) = bench.start();
    let fresh_after_restart = send_fresh(&daemon).await?;
    let mib_after_restart = settled_memory_mib(&daemon).await?;
    let figures = json!({
        "messages": messages,
        "fresh_when_empty_ms": fresh_when_empty.as_secs_f64() * 1e3,
        "accepts_per_second": messages as f64 / took.as_secs_f64(),
        "memory_mib": mib_after,
        "more_mib": mib_after.saturating_sub(mib_before),
        "fresh_ms": fresh.as_secs_f64() * 1e3,
        "memory_after_restart_mib": mib_after_restart,
        "restart_s": restart.as_secs_f64(),
        "fresh_after_restart_ms": fresh_after_restart.as_secs_f64() * 1e3,
    });
    println!("{figures}");
    Ok(())
}

struct Bench<'a> {
    program: &'a Path,
    data_dir: String,
    envs: Vec<(&'a str, &'a str)>,
}

impl Bench<'_> {
    fn start(&self) -> (Daemon, Duration) {
        let arguments = [
            "dev",
            "--json",
            "--http-port",
            "0",
            "--smtp-port",
            "0",
            "--smtps-port",
            "0",
            "--data-dir",
            &self.data_dir,
        ];
        let begun = Instant::now();
        let daemon = Daemon::start(self.program, arguments, &self.envs);
        (daemon, begun.elapsed())
    }

    fn suspend(&self) -> anyhow::Result<()> {
        let mut command = Command::new(self.program);
        command.args(["queue", "suspend", &format!("domain:{WAITING_DOMAIN}"), "--reason", "benchmark"]);
        let output = command.args(["--data-dir", &self.data_dir]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

fn client(daemon: &Daemon) -> (Client, String) {
    let text = |name: &str| daemon.ready()[name].as_str().unwrap_or_default().to_owned();
    (Client::new(&text("url")), text("api_key"))
}

fn message(to: &[String], subject: &str) -> Value {
    json!({ "to": to, "from": "shop@example.test", "subject": subject, "plain_body": "Thank you for your order." })
}

async fn send_waiting(daemon: &Daemon, sends: usize) -> anyhow::Result<()> {
    let (client, key) = client(daemon);
    let next = Arc::new(AtomicUsize::new(0));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let (client, key, next) = (client.clone(), key.clone(), Arc::clone(&next));
        callers.spawn(async move {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= sends {
                    return Ok(());
                }
                let to: Vec<String> =
                    (0..RECIPIENTS_PER_SEND).map(|n| format!("u{n}@{WAITING_DOMAIN}")).collect();
                let body = message(&to, "Later");
                let reply = client.post_json("/api/v1/send/message", Some(&key), &body).await?;
                ensure!(reply.json()["status"] == "success", "{}", reply.text());
            }
        });
    }
    callers.join_all().await.into_iter().collect()
}

/// Sends a message; returns the time from the request until it is in the inbox.
async fn send_fresh(daemon: &Daemon) -> anyhow::Result<Duration> {
    let (client, key) = client(daemon);
    let to = format!("fresh-{}@example.com", SystemClock.now().as_micros());
    let begun = Instant::now();
    let reply = client
        .post_json("/api/v1/send/message", Some(&key), &message(std::slice::from_ref(&to), "Now"))
        .await?;
    ensure!(reply.json()["status"] == "success", "{}", reply.text());
    let caught = client.get(&format!("/dev/messages/wait?to={to}&timeout=20")).await?;
    ensure!(caught.status == 200, "{}", caught.text());
    Ok(begun.elapsed())
}

async fn settled_memory_mib(daemon: &Daemon) -> anyhow::Result<u64> {
    tokio::time::sleep(SETTLE).await;
    memory_mib(daemon)
}

fn memory_mib(daemon: &Daemon) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib / 1_024)
}
