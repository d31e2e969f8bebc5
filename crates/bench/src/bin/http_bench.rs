//! Measures how fast the HTTP port accepts: `http_bench --url URL --key KEY [--seconds N]`, at 1, 16, 128 and 1,024
//! callers; with `--batch N` by send/batch with N messages each, at 1 and 4 callers.
//!
//! Each caller has its own connection and sends the next message when the last one is answered. With `--beside KEY
//! --beside-from ADDRESS` another server sends single messages meanwhile, at most 100 a second; its figures follow.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use postroad_testkit::http::{Client, Method};
use serde_json::{Value, json};

const CALLERS: [usize; 4] = [1, 16, 128, 1_024];
const BATCH_CALLERS: [usize; 2] = [1, 4];
const BESIDE_PAUSE: Duration = Duration::from_millis(10);
const SEND_PATH: &str = "/api/v1/send/message";

/// Request that each caller posts, and the number of its messages.
#[derive(Clone)]
struct Load {
    path: &'static str,
    body: Bytes,
    messages: usize,
}

/// Server that sends single messages beside the load.
struct Beside<'a> {
    key: &'a str,
    from: &'a str,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    let url = option("--url").context("--url is missing")?;
    let key = option("--key").context("--key is missing")?;
    let seconds = option("--seconds").map_or(Ok(5), |text| text.parse())?;
    let beside = option("--beside").zip(option("--beside-from"));
    let beside = beside.map(|(key, from)| Beside { key, from });
    println!("{:>8} {:>10} {:>10} {:>10} {:>8}", "callers", "accepts/s", "p50 ms", "p99 ms", "failed");
    let (load, levels) = match option("--batch").map(|text| text.parse()).transpose()? {
        None => {
            (Load { path: SEND_PATH, body: request(SENDER).to_string().into(), messages: 1 }, &CALLERS[..])
        }
        Some(messages) => (batches(messages), &BATCH_CALLERS[..]),
    };
    for callers in levels {
        measure(url, key, &load, *callers, Duration::from_secs(seconds), beside.as_ref()).await?;
    }
    Ok(())
}

fn batches(messages: usize) -> Load {
    let all = vec![request(SENDER); messages];
    Load { path: "/api/v1/send/batch", body: json!({"messages": all}).to_string().into(), messages }
}

/// Runs `callers` clients with a connection each, as fast as they are answered, and prints their figures.
async fn measure(
    url: &str,
    key: &str,
    load: &Load,
    callers: usize,
    time: Duration,
    beside: Option<&Beside<'_>>,
) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    let begun = Instant::now();
    for _ in 0..callers {
        let caller = Caller { client: Client::new(url), key: key.to_owned(), load: load.clone() };
        tasks.spawn(caller.send_until(Arc::clone(&stop), Duration::ZERO));
    }
    let other = beside.map(|beside| {
        let load = Load { path: SEND_PATH, body: request(beside.from).to_string().into(), messages: 1 };
        let caller = Caller { client: Client::new(url), key: beside.key.to_owned(), load };
        tokio::spawn(caller.send_until(Arc::clone(&stop), BESIDE_PAUSE))
    });
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let results = tasks.join_all().await;
    let took = begun.elapsed();
    let failed: u64 = results.iter().map(|(_, failed)| failed).sum();
    let latencies: Vec<Duration> = results.into_iter().flat_map(|(latencies, _)| latencies).collect();
    print(callers, latencies, load.messages, took, failed)?;
    if let Some(other) = other {
        let (latencies, failed) = other.await?;
        println!("beside {callers} callers:");
        print(1, latencies, 1, took, failed)?;
    }
    Ok(())
}

fn print(
    callers: usize,
    mut latencies: Vec<Duration>,
    messages: usize,
    took: Duration,
    failed: u64,
) -> anyhow::Result<()> {
    ensure!(!latencies.is_empty(), "no request was answered");
    latencies.sort_unstable();
    let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
    let rate = (latencies.len() * messages) as f64 / took.as_secs_f64();
    println!("{callers:>8} {rate:>10.0} {:>10.2} {:>10.2} {failed:>8}", at(0.5), at(0.99));
    Ok(())
}

struct Caller {
    client: Client,
    key: String,
    load: Load,
}

impl Caller {
    /// Sends one request after the other, with a pause in between; returns how long each success took, and the number
    /// of failures.
    async fn send_until(self, stop: Arc<AtomicBool>, pause: Duration) -> (Vec<Duration>, u64) {
        let (mut latencies, mut failed) = (Vec::new(), 0_u64);
        let headers = [("X-Server-API-Key", self.key.as_str()), ("Content-Type", "application/json")];
        while !stop.load(Ordering::Relaxed) {
            let started = Instant::now();
            let body = self.load.body.clone();
            match self.client.request(Method::POST, self.load.path, &headers, body).await {
                Ok(reply) if reply.body.starts_with(br#"{"status":"success""#) => {
                    latencies.push(started.elapsed());
                }
                _ => failed += 1,
            }
            tokio::time::sleep(pause).await;
        }
        (latencies, failed)
    }
}

const SENDER: &str = "shop@example.test";

/// About 10 kB of text that compresses like mail.
fn request(from: &str) -> Value {
    let words = ["order", "shipped", "total", "thank", "you", "for", "your", "purchase", "invoice", "number"];
    let numbered =
        (0..1_700_usize).flat_map(|n| [words[n * 7 % 10].to_owned(), (n * 7_919 % 1_000).to_string()]);
    let text = numbered.collect::<Vec<_>>().join(" ");
    json!({
        "to": ["someone@example.com"],
        "from": format!("Shop <{from}>"),
        "subject": "Your order",
        "html_body": &text[..10_000],
    })
}
