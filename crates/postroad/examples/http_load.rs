//! A number of messages through the HTTP port: `http_load --url URL --key KEY --from ADDRESS --messages N`
//! `[--callers N] [--recipients N] [--bytes N] [--rate N]`.
//!
//! Without a rate each caller sends the next request when the last one is answered; with one, requests start by the clock,
//! however slow the answers are, and a wait counts from when its request was due. Prints one line of JSON.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use postroad_testkit::http::{Client, Method};
use serde_json::{Value, json};

struct Load {
    url: String,
    key: String,
    from: String,
    requests: usize,
    callers: usize,
    recipients: usize,
    bytes: usize,
    rate: Option<f64>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let number = |name: &str, default: usize| {
        option(name).map_or(Ok(default), |text| text.parse()).context(name.to_owned())
    };
    let recipients = number("--recipients", 1)?.max(1);
    let load = Load {
        url: option("--url").context("--url is missing")?,
        key: option("--key").context("--key is missing")?,
        from: option("--from").context("--from is missing")?,
        requests: number("--messages", 1_000)?.div_ceil(recipients),
        callers: number("--callers", 100)?,
        recipients,
        bytes: number("--bytes", 10_000)?,
        rate: option("--rate").map(|text| text.parse()).transpose()?,
    };
    println!("{}", run(Arc::new(load)).await?);
    Ok(())
}

async fn run(load: Arc<Load>) -> anyhow::Result<Value> {
    let body = Bytes::from(request(&load).to_string());
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..load.callers {
        let (load, body, next) = (Arc::clone(&load), body.clone(), Arc::clone(&next));
        tasks.spawn(async move { caller(&load, &body, &next, begun).await });
    }
    let mut waits = Vec::new();
    for caller in tasks.join_all().await {
        waits.extend(caller?);
    }
    let took = begun.elapsed().as_secs_f64();
    ensure!(waits.len() == load.requests, "{} of {} requests were answered", waits.len(), load.requests);
    waits.sort_unstable();
    let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
    Ok(json!({
        "requests": waits.len(),
        "messages": waits.len() * load.recipients,
        "seconds": took,
        "requests_per_second": waits.len() as f64 / took,
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "max_ms": at(1.0),
    }))
}

async fn caller(
    load: &Load,
    body: &Bytes,
    next: &AtomicUsize,
    begun: Instant,
) -> anyhow::Result<Vec<Duration>> {
    let client = Client::new(&load.url);
    let headers = [("X-Server-API-Key", load.key.as_str()), ("Content-Type", "application/json")];
    let mut waits = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= load.requests {
            return Ok(waits);
        }
        let due = match load.rate {
            None => Instant::now(),
            Some(rate) => begun + Duration::from_secs_f64(number as f64 / rate),
        };
        tokio::time::sleep_until(due.into()).await;
        let reply = client.request(Method::POST, "/api/v1/send/message", &headers, body.clone()).await;
        let reply = reply.map_err(|error| anyhow::anyhow!("a request failed: {error}"))?;
        ensure!(
            reply.body.starts_with(br#"{"status":"success""#),
            "refused: {}",
            String::from_utf8_lossy(&reply.body)
        );
        waits.push(due.elapsed());
    }
}

/// Text that compresses like mail does.
fn request(load: &Load) -> Value {
    let words = ["order", "shipped", "total", "thank", "you", "for", "your", "purchase", "invoice", "number"];
    let mut text = String::with_capacity(load.bytes + 16);
    for n in 0_usize.. {
        if text.len() >= load.bytes {
            break;
        }
        text.push_str(words[n * 7 % 10]);
        text.push(' ');
        text.push_str(&(n * 7_919 % 1_000).to_string());
        text.push(if n % 12 == 11 { '\n' } else { ' ' });
    }
    let to: Vec<String> = (0..load.recipients).map(|n| format!("someone{n}@dest.example")).collect();
    json!({
        "to": to,
        "from": format!("Shop <{}>", load.from),
        "subject": "Your order",
        "html_body": &text[..load.bytes],
    })
}
