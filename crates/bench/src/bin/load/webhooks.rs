//! Measures how fast events reach a receiver: creates a webhook that posts here, sends messages, and waits for
//! all their events.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::http::Http;

const EVENTS_WAIT_MAX: Duration = Duration::from_mins(5);

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
        let events: Arc<Events> = Arc::default();
        tokio::spawn(receive(listener, Arc::clone(&events)));
        let hook =
            json!({ "name": "bench", "url": url, "events": ["message.accepted", "message.delivered"] });
        let request = self.load.to.request("webhooks/create", &hook);
        self.load.to.connect().await?.send_request(&request).await.context("webhooks/create")?;

        let wanted = self.load.messages * self.events;
        let begun = Instant::now();
        let mut figures = self.load.run().await?;
        while count(&events) < wanted {
            ensure!(begun.elapsed() < EVENTS_WAIT_MAX, "{} of {wanted} events came", count(&events));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let took = begun.elapsed().as_secs_f64();
        figures["events"] = json!(wanted);
        figures["events_seconds"] = json!(took);
        figures["events_per_second"] = json!(wanted as f64 / took);
        Ok(figures)
    }
}

/// Ids of received events; repeated posts count once.
type Events = Mutex<HashSet<String>>;

fn count(events: &Events) -> usize {
    events.lock().len()
}

async fn receive(listener: TcpListener, events: Arc<Events>) {
    while let Ok((stream, _)) = listener.accept().await {
        let events = Arc::clone(&events);
        tokio::spawn(async move {
            // The sender may disconnect at any time.
            drop(answer_posts(stream, &events).await);
        });
    }
}

/// Answers 200 to every post on this connection.
async fn answer_posts(mut stream: TcpStream, events: &Events) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8 << 10);
    loop {
        while let Some((length, event)) = whole_request(&buffer)? {
            buffer.drain(..length);
            events.lock().insert(event);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await?;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

/// Length and event id of a complete request.
fn whole_request(buffer: &[u8]) -> anyhow::Result<Option<(usize, String)>> {
    let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let length = end + 4 + field("content-length:").context("a post without a length")?.parse::<usize>()?;
    let event = field("webhook-id:").context("a post without an id")?;
    Ok((buffer.len() >= length).then(|| (length, event.to_owned())))
}
