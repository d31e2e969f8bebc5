//! Measures how fast the HTTP port accepts: `http_bench --url URL --key KEY [--seconds N]`, at 1, 16, 128 and
//! 1,024 callers.
//!
//! Each caller has its own connection and sends the next message when the last one is answered.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use postroad_testkit::http::{Client, Method};
use serde_json::{Value, json};

const CALLERS: [usize; 4] = [1, 16, 128, 1_024];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    let url = option("--url").context("--url is missing")?;
    let key = option("--key").context("--key is missing")?;
    let seconds = option("--seconds").map_or(Ok(5), |text| text.parse())?;
    println!("{:>8} {:>10} {:>10} {:>10} {:>8}", "callers", "accepts/s", "p50 ms", "p99 ms", "failed");
    for callers in CALLERS {
        level(url, key, callers, Duration::from_secs(seconds)).await?;
    }
    Ok(())
}

/// Runs `callers` clients with a connection each, as fast as they are answered.
async fn level(url: &str, key: &str, callers: usize, time: Duration) -> anyhow::Result<()> {
    let body = Bytes::from(request().to_string());
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    let begun = Instant::now();
    for _ in 0..callers {
        let (client, key, body, stop) = (Client::new(url), key.to_owned(), body.clone(), Arc::clone(&stop));
        tasks.spawn(async move {
            let (mut waits, mut failed) = (Vec::new(), 0_u64);
            while !stop.load(Ordering::Relaxed) {
                let asked = Instant::now();
                let headers = [("X-Server-API-Key", key.as_str()), ("Content-Type", "application/json")];
                match client.request(Method::POST, "/api/v1/send/message", &headers, body.clone()).await {
                    Ok(reply) if reply.body.starts_with(br#"{"status":"success""#) => {
                        waits.push(asked.elapsed());
                    }
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
    println!("{callers:>8} {rate:>10.0} {:>10.2} {:>10.2} {failed:>8}", at(0.5), at(0.99));
    Ok(())
}

/// About 10 kB of text that compresses like mail.
fn request() -> Value {
    let words = ["order", "shipped", "total", "thank", "you", "for", "your", "purchase", "invoice", "number"];
    let numbered =
        (0..1_700_usize).flat_map(|n| [words[n * 7 % 10].to_owned(), (n * 7_919 % 1_000).to_string()]);
    let text = numbered.collect::<Vec<_>>().join(" ");
    json!({
        "to": ["someone@example.com"],
        "from": "Shop <shop@example.test>",
        "subject": "Your order",
        "html_body": &text[..10_000],
    })
}
