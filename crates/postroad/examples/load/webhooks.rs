//! How fast events reach a receiver: it makes a webhook that posts here, sends messages, and waits for all their events.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::http::Http;

const PATIENCE: Duration = Duration::from_mins(5);

#[derive(Debug, Clone, Args)]
pub(crate) struct Webhooks {
    #[command(flatten)]
    load: Http,
    /// Events of each message
    #[arg(long, default_value_t = 2)]
    events: usize,
}

impl Webhooks {
    pub(crate) async fn run(&self) -> anyhow::Result<Value> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let posts = Arc::new(AtomicUsize::new(0));
        tokio::spawn(receive(listener, Arc::clone(&posts)));
        let hook =
            json!({ "name": "bench", "url": url, "events": ["message.accepted", "message.delivered"] });
        let request = self.load.to.request("webhooks/create", &hook);
        self.load.to.connect().await?.ask(&request).await.context("webhooks/create")?;

        let wanted = self.load.messages * self.events;
        let begun = Instant::now();
        let mut figures = self.load.run().await?;
        while posts.load(Ordering::Relaxed) < wanted {
            let have = posts.load(Ordering::Relaxed);
            ensure!(begun.elapsed() < PATIENCE, "{have} of {wanted} events came");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let took = begun.elapsed().as_secs_f64();
        figures["events"] = json!(wanted);
        figures["events_seconds"] = json!(took);
        figures["events_per_second"] = json!(wanted as f64 / took);
        Ok(figures)
    }
}

async fn receive(listener: TcpListener, posts: Arc<AtomicUsize>) {
    while let Ok((stream, _)) = listener.accept().await {
        let posts = Arc::clone(&posts);
        tokio::spawn(async move {
            // The sender may hang up at any time.
            drop(answer(stream, &posts).await);
        });
    }
}

/// 200 to every post on this connection.
async fn answer(mut stream: TcpStream, posts: &AtomicUsize) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8 << 10);
    loop {
        while let Some(length) = whole_request(&buffer)? {
            buffer.drain(..length);
            posts.fetch_add(1, Ordering::Relaxed);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await?;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

/// Its length, when all of it is there.
fn whole_request(buffer: &[u8]) -> anyhow::Result<Option<usize>> {
    let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = end + 4 + length.context("a post without a length")?.trim().parse::<usize>()?;
    Ok((buffer.len() >= length).then_some(length))
}
