//! Calls send/message over many connections, with as little work as possible, to leave the CPU to the service.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use postroad_testkit::mail_like_text;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::pace::Pace;

const HEAD_BYTES_MAX: usize = 16 << 10;

#[derive(Debug, Clone, Args)]
pub(crate) struct Http {
    #[command(flatten)]
    pub(crate) to: Target,
    #[arg(long, default_value_t = 1_000)]
    pub(crate) messages: usize,
    #[arg(long, default_value_t = 100)]
    pub(crate) callers: usize,
    /// Recipients of each request
    #[arg(long, default_value_t = 1)]
    pub(crate) recipients: usize,
    #[arg(long, default_value_t = 10_000)]
    pub(crate) bytes: usize,
    /// Requests a second
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    /// Deliver no earlier than this (RFC 3339)
    #[arg(long)]
    pub(crate) send_at: Option<String>,
}

/// URL, key and sender.
#[derive(Debug, Clone, Args)]
pub(crate) struct Target {
    #[arg(long)]
    pub(crate) url: String,
    #[arg(long)]
    pub(crate) key: String,
    #[arg(long)]
    pub(crate) from: String,
}

impl Http {
    pub(crate) async fn run(&self) -> anyhow::Result<Value> {
        let request: Arc<[u8]> = self.to.request("send/message", &self.body()).into();
        let pace = Pace::start(self.messages.div_ceil(self.recipients), self.rate);
        let mut callers = JoinSet::new();
        for _ in 0..self.callers {
            let (pace, request) = (Arc::clone(&pace), Arc::clone(&request));
            let mut connection = self.to.connect().await?;
            callers.spawn(async move {
                let mut latencies = Vec::new();
                while let Some((_, due)) = pace.next().await {
                    connection.send_request(&request).await?;
                    latencies.push(due.elapsed());
                }
                Ok::<Vec<Duration>, anyhow::Error>(latencies)
            });
        }
        pace.figures(callers, self.recipients).await
    }

    fn body(&self) -> Value {
        let to: Vec<String> = (0..self.recipients).map(|n| format!("someone{n}@dest.example")).collect();
        let mut body = json!({
            "to": to,
            "from": format!("Shop <{}>", self.to.from),
            "subject": "Your order",
            "html_body": mail_like_text(self.bytes, "\n"),
        });
        if let Some(send_at) = &self.send_at {
            body["send_at"] = json!(send_at);
        }
        body
    }
}

impl Target {
    /// Complete HTTP request as bytes.
    pub(crate) fn request(&self, endpoint: &str, body: &Value) -> Vec<u8> {
        let body = body.to_string();
        let head = format!(
            "POST /api/v1/{endpoint} HTTP/1.1\r\nHost: localhost\r\nX-Server-API-Key: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.key,
            body.len()
        );
        (head + &body).into_bytes()
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Connection> {
        let address = self.url.strip_prefix("http://").context("--url is http://HOST:PORT")?;
        let stream = TcpStream::connect(address.trim_end_matches('/')).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::with_capacity(4 << 10) })
    }
}

pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Sends one request; fails unless the answer says success.
    pub(crate) async fn send_request(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (head, body) = loop {
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the server hung up");
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..end]).to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
                let length: usize = length.context("an answer without a length")?.trim().parse()?;
                break (end + 4, length);
            }
            ensure!(self.buffer.len() < HEAD_BYTES_MAX, "the answer has no end of its head");
        };
        while self.buffer.len() < head + body {
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the server hung up");
        }
        if !self.buffer[head..].starts_with(br#"{"status":"success""#) {
            bail!("refused: {}", String::from_utf8_lossy(&self.buffer));
        }
        Ok(())
    }
}
