//! Measures the time from the accepted request to DATA at the receiving mail server.
//!
//! The tool itself is the mail server to which the service under test delivers. Each message carries a number; its
//! latency is the time from the answer to its request until its DATA arrives.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::http::Target;
use crate::pace::{Pace, percentiles};

const NUMBER_HEADER: &str = "X-Bench-Number";
const ARRIVAL_WAIT_MAX: Duration = Duration::from_secs(30);
const CALLERS: usize = 32;

#[derive(Debug, Clone, Args)]
pub(crate) struct Latency {
    #[command(flatten)]
    to: Target,
    /// Port that the service delivers to
    #[arg(long)]
    sink_port: u16,
    #[arg(long, default_value_t = 200.0)]
    rate: f64,
    #[arg(long, default_value_t = 2_000)]
    messages: usize,
}

/// Arrival times of messages by number.
type Arrivals = Arc<Mutex<HashMap<usize, Instant>>>;

impl Latency {
    pub(crate) async fn run(&self) -> anyhow::Result<Value> {
        let arrivals = Arrivals::default();
        let listener = TcpListener::bind(("127.0.0.1", self.sink_port)).await?;
        tokio::spawn(serve(listener, Arc::clone(&arrivals)));
        let accepted = self.send().await?;
        let deadline = Instant::now() + ARRIVAL_WAIT_MAX;
        while lock(&arrivals).len() < self.messages {
            let have = lock(&arrivals).len();
            ensure!(Instant::now() < deadline, "{have} of {} messages came", self.messages);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let arrivals = lock(&arrivals);
        // A message may arrive before its sender has the answer.
        let wait = |(number, at): &(usize, Instant)| {
            arrivals.get(number).map(|came| came.saturating_duration_since(*at))
        };
        let mut figures = percentiles(accepted.iter().filter_map(wait).collect());
        figures["messages"] = json!(self.messages);
        figures["rate"] = json!(self.rate);
        Ok(figures)
    }

    /// Sends at the fixed rate; returns when each message was accepted.
    async fn send(&self) -> anyhow::Result<Vec<(usize, Instant)>> {
        let pace = Pace::start(self.messages, Some(self.rate));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let (pace, to, mut connection) = (Arc::clone(&pace), self.to.clone(), self.to.connect().await?);
            callers.spawn(async move {
                let mut accepted = Vec::new();
                while let Some((number, _)) = pace.next().await {
                    let body = json!({
                        "to": [format!("someone{number}@dest.example")],
                        "from": to.from,
                        "subject": "Your order",
                        "plain_body": "It is on its way.\r\n".repeat(500),
                        "headers": { NUMBER_HEADER: number.to_string() },
                    });
                    connection.send_request(&to.request("send/message", &body)).await?;
                    accepted.push((number, Instant::now()));
                }
                Ok::<_, anyhow::Error>(accepted)
            });
        }
        let accepted: anyhow::Result<Vec<_>> = callers.join_all().await.into_iter().collect();
        Ok(accepted?.into_iter().flatten().collect())
    }
}

async fn serve(listener: TcpListener, arrivals: Arrivals) {
    while let Ok((stream, _)) = listener.accept().await {
        let arrivals = Arc::clone(&arrivals);
        tokio::spawn(async move {
            // The peer may disconnect at any time.
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

/// Reads a message to its end and returns its number.
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

fn lock<T>(mutex: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    mutex.lock()
}
