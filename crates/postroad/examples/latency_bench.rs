//! From the accepted request to the other mail server's DATA: `latency_bench --sink-port PORT --url URL --key KEY`
//! `--from ADDRESS [--rate N] [--messages N]`.
//!
//! It is the mail server itself, at PORT, where the service under test has to deliver to. Each message carries its number;
//! what counts is the time from the answer to its request until its DATA comes. Prints one line of JSON.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use postroad_testkit::http::{Client, Method};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const NUMBER_HEADER: &str = "X-Bench-Number";
const PATIENCE: Duration = Duration::from_secs(30);

/// When the messages came, by their numbers.
type Arrivals = Arc<Mutex<HashMap<usize, Instant>>>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let needed = |name: &str| option(name).with_context(|| format!("{name} is missing"));
    let rate: f64 = option("--rate").map_or(Ok(200.0), |text| text.parse())?;
    let messages: usize = option("--messages").map_or(Ok(2_000), |text| text.parse())?;
    let arrivals = Arrivals::default();
    let listener = TcpListener::bind(("127.0.0.1", needed("--sink-port")?.parse()?)).await?;
    tokio::spawn(serve(listener, Arc::clone(&arrivals)));
    let load = (needed("--url")?, needed("--key")?, needed("--from")?);
    let accepted = send(&load, rate, messages).await?;
    let patience = Instant::now() + PATIENCE;
    while lock(&arrivals).len() < messages {
        ensure!(Instant::now() < patience, "{} of {messages} messages came", lock(&arrivals).len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let arrivals = lock(&arrivals);
    let mut waits: Vec<Duration> = accepted
        .iter()
        .enumerate()
        // One may come before its sender has the answer.
        .filter_map(|(number, at)| Some(arrivals.get(&number)?.saturating_duration_since(*at)))
        .collect();
    waits.sort_unstable();
    let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
    println!(
        "{}",
        json!({"messages": messages, "rate": rate, "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1.0)})
    );
    Ok(())
}

/// By the clock; when each was accepted.
async fn send(
    (url, key, from): &(String, String, String),
    rate: f64,
    messages: usize,
) -> anyhow::Result<Vec<Instant>> {
    let begun = Instant::now();
    let mut tasks = Vec::new();
    let clients: Vec<Arc<Client>> = (0..32).map(|_| Arc::new(Client::new(url))).collect();
    for number in 0..messages {
        let body = json!({
            "to": [format!("someone{number}@dest.example")],
            "from": from,
            "subject": "Your order",
            "plain_body": "It is on its way.\r\n".repeat(500),
            "headers": { NUMBER_HEADER: number.to_string() },
        });
        let (client, key) = (Arc::clone(&clients[number % clients.len()]), key.clone());
        tokio::time::sleep_until((begun + Duration::from_secs_f64(number as f64 / rate)).into()).await;
        tasks.push(tokio::spawn(async move {
            let headers = [("X-Server-API-Key", key.as_str()), ("Content-Type", "application/json")];
            let body = Bytes::from(body.to_string());
            let reply = client.request(Method::POST, "/api/v1/send/message", &headers, body).await;
            let reply = reply.map_err(|error| anyhow::anyhow!("a request failed: {error}"))?;
            let is_good = reply.body.starts_with(br#"{"status":"success""#);
            ensure!(is_good, "refused: {}", String::from_utf8_lossy(&reply.body));
            Ok(Instant::now())
        }));
    }
    let mut accepted = Vec::with_capacity(messages);
    for task in tasks {
        accepted.push(task.await??);
    }
    Ok(accepted)
}

async fn serve(listener: TcpListener, arrivals: Arrivals) {
    while let Ok((stream, _)) = listener.accept().await {
        let arrivals = Arc::clone(&arrivals);
        tokio::spawn(async move {
            // The other side may hang up at any time.
            drop(converse(stream, &arrivals).await);
        });
    }
}

async fn converse(stream: TcpStream, arrivals: &Arrivals) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read);
    write.write_all(b"220 sink.example\r\n").await?;
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let verb = line.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        match verb.as_str() {
            "EHLO" => write.write_all(b"250-sink.example\r\n250 PIPELINING\r\n").await?,
            "DATA" => {
                let came = Instant::now();
                write.write_all(b"354 go on\r\n").await?;
                if let Some(number) = read_message(&mut lines).await? {
                    lock(arrivals).entry(number).or_insert(came);
                }
                write.write_all(b"250 taken\r\n").await?;
            }
            "QUIT" => return write.write_all(b"221 bye\r\n").await,
            _ => write.write_all(b"250 ok\r\n").await?,
        }
    }
}

/// To its end; its number.
async fn read_message(
    lines: &mut BufReader<tokio::net::tcp::OwnedReadHalf>,
) -> std::io::Result<Option<usize>> {
    let (mut number, mut line) = (None, String::new());
    loop {
        line.clear();
        if lines.read_line(&mut line).await? == 0 || line == ".\r\n" {
            return Ok(number);
        }
        if let Some(value) = line.strip_prefix(NUMBER_HEADER) {
            number = value.trim_start_matches(':').trim().parse().ok();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
