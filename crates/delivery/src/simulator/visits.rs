//! Does what a reader would: fetches the pixel of a message, or follows its first link, some seconds after the message
//! was taken, over our own HTTP door, so that all of what a real visit goes through is gone through.
//!
//! On failure: what cannot be fetched is forgotten with a word in the log; it was only a simulation. So it is where plain
//! HTTP is not served.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::mail_back::reachable;

/// Later than what is taken for a scanner's click.
const DELAY: Duration = Duration::from_secs(2);
const WAITING_MAX: usize = 10_000;
const CONNECTIONS_MAX: usize = 8;
const EXCHANGE_MAX: Duration = Duration::from_secs(10);
const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) Postroad-Simulator/1.0";

/// What a reader looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visit {
    Open,
    Click,
}

#[derive(Debug, Clone)]
pub(super) struct Visits {
    queue: mpsc::Sender<(Instant, String)>,
}

impl Visits {
    /// Works until the queue is dropped. Before `door` is known, nobody visits.
    pub(super) fn start(door: watch::Receiver<Option<SocketAddr>>) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(work(waiting, door));
        Self { queue }
    }

    pub(super) fn hand_in(&self, visit: Visit, message: &[u8]) {
        let Some(url) = find_url(visit, message) else { return };
        if self.queue.try_send((Instant::now() + DELAY, url)).is_err() {
            tracing::warn!("too many simulated visits are waiting; one is left out");
        }
    }
}

/// The first of our links of that kind.
fn find_url(visit: Visit, message: &[u8]) -> Option<String> {
    let view = postroad_mail::view(message);
    let mark = match visit {
        Visit::Open => "/o/",
        Visit::Click => "/c/",
    };
    let is_token = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    // A link of ours is long behind its mark, and nobody else's begins so.
    [view.html_body, view.plain_body].into_iter().flatten().find_map(|text| {
        let starts = text.match_indices("http").map(|(at, _)| &text[at..]);
        let mut ours = starts.filter_map(|rest| {
            let end = rest.find(|c: char| !is_token(c) && !":/.[]".contains(c)).unwrap_or(rest.len());
            let (base, token) = rest[..end].split_once(mark)?;
            let is_ours = base.contains("://") && token.len() > 20 && token.chars().all(is_token);
            is_ours.then(|| rest[..end].to_owned())
        });
        ours.next()
    })
}

/// All wait equally long, so the first that came is the first that is due.
async fn work(mut waiting: mpsc::Receiver<(Instant, String)>, door: watch::Receiver<Option<SocketAddr>>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Dropped with this task, and every connection with it.
    let mut visiting = JoinSet::new();
    while let Some((due, url)) = waiting.recv().await {
        sleep_until(due).await;
        let address = *door.borrow();
        let Some(address) = address else { continue };
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        while visiting.try_join_next().is_some() {}
        visiting.spawn(async move {
            match timeout(EXCHANGE_MAX, fetch(reachable(address), &url)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "a simulated visit failed"),
                Err(_) => tracing::warn!("a simulated visit took too long"),
            }
            drop(place);
        });
    }
}

/// One request over one connection; only its status is looked at.
async fn fetch(door: SocketAddr, url: &str) -> io::Result<()> {
    let (_, rest) = url.split_once("://").ok_or_else(|| io::Error::other("no address"))?;
    let (host, path) = rest.split_once('/').ok_or_else(|| io::Error::other("no path"))?;
    let mut stream = TcpStream::connect(door).await?;
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {AGENT}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(4 << 10).read_to_end(&mut answer).await?;
    let status = answer.split(|b| *b == b' ').nth(1).unwrap_or_default();
    match status {
        b"200" | b"302" => Ok(()),
        other => Err(io::Error::other(format!("answered with {}", String::from_utf8_lossy(other)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_link_of_ours_is_found() {
        let message = b"Content-Type: text/html\r\n\r\n<a href=\"http://example.com/c/x\">1</a>\
            <a href=\"http://127.0.0.1:8025/c/EQGsAmh0dHBzOi8vZXhhbXBsZS5jb20v_-x\">2</a>\
            <img src=\"https://track.example.net/o/EgNNkM9QMS3uV0p2vcXhxsXIoA\">";
        assert_eq!(
            find_url(Visit::Click, message).as_deref(),
            Some("http://127.0.0.1:8025/c/EQGsAmh0dHBzOi8vZXhhbXBsZS5jb20v_-x")
        );
        assert_eq!(
            find_url(Visit::Open, message).as_deref(),
            Some("https://track.example.net/o/EgNNkM9QMS3uV0p2vcXhxsXIoA")
        );
        assert_eq!(find_url(Visit::Open, b"Subject: x\r\n\r\nhttps://example.com/o/short"), None);
    }
}
