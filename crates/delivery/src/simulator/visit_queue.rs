//! Acts as a reader would: fetches the pixel of a message, or follows its first link, some seconds after the message
//! was accepted. It uses our own HTTP listener, so that it passes everything a real visit passes.
//!
//! A fetch that fails is dropped with a log line; it was only a simulation. If plain HTTP is not served, nothing is
//! fetched.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::links::find_link;
use super::return_queue::loopback_if_unspecified;
use super::visit::Visit;

/// Maximum number of message bytes that wait to be searched for a link.
const SEARCHED_BYTES_MAX: usize = 64 << 20;
const KIB: usize = 1 << 10;
/// Maximum number of messages searched at the same time, each on a thread for blocking work.
const SEARCHES_MAX: usize = 2;
/// Late enough not to count as a scanner's click.
const VISIT_DELAY: Duration = Duration::from_secs(2);
const WAITING_MAX: usize = 10_000;
const CONNECTIONS_MAX: usize = 8;
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);
const USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) Postroad-Simulator/1.0";

/// Queue of links to fetch.
#[derive(Debug, Clone)]
pub(super) struct VisitQueue {
    queue: mpsc::Sender<(Instant, String)>,
    /// Budget for messages that wait to be searched, in KiB.
    searched_bytes: Arc<Semaphore>,
    searches: Arc<Semaphore>,
}

impl VisitQueue {
    /// Runs until the queue is dropped. Visits that are due before `http_address` is known are dropped.
    pub(super) fn start(http_address: watch::Receiver<Option<SocketAddr>>) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(run_queue(waiting, http_address));
        Self {
            queue,
            searched_bytes: Arc::new(Semaphore::new(SEARCHED_BYTES_MAX / KIB)),
            searches: Arc::new(Semaphore::new(SEARCHES_MAX)),
        }
    }

    /// Visits the message later. Returns at once: the message is searched on a blocking thread.
    pub(super) fn submit(&self, visit: Visit, message: Bytes) {
        let size = u32::try_from(message.len().div_ceil(KIB)).unwrap_or(u32::MAX);
        let Ok(share) = Arc::clone(&self.searched_bytes).try_acquire_many_owned(size) else {
            tracing::warn!("simulator: queue of visits is full; one dropped");
            return;
        };
        let (due, queue, searches) =
            (Instant::now() + VISIT_DELAY, self.queue.clone(), Arc::clone(&self.searches));
        tokio::spawn(async move {
            // The semaphore is never closed.
            let Ok(permit) = searches.acquire_owned().await else { return };
            let searching = tokio::task::spawn_blocking(move || {
                let _permits = (permit, share);
                find_link(visit, &message)
            });
            if let Ok(Some(url)) = searching.await
                && queue.try_send((due, url)).is_err()
            {
                tracing::warn!("simulator: queue of visits is full; one dropped");
            }
        });
    }
}

/// Fetches queued links when they are due. All entries wait about equally long, so the first in is about the first due.
async fn run_queue(
    mut waiting: mpsc::Receiver<(Instant, String)>,
    http_address: watch::Receiver<Option<SocketAddr>>,
) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Dropped with this task, which closes every connection.
    let mut fetches = JoinSet::new();
    while let Some((due, url)) = waiting.recv().await {
        sleep_until(due).await;
        let address = *http_address.borrow();
        let Some(address) = address else { continue };
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        while fetches.try_join_next().is_some() {}
        fetches.spawn(async move {
            match timeout(EXCHANGE_TIMEOUT, fetch(loopback_if_unspecified(address), &url)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "simulator: visit failed"),
                Err(_) => tracing::warn!("simulator: visit timed out"),
            }
            drop(permit);
        });
    }
}

/// One request over one connection; only its status is read.
async fn fetch(http_address: SocketAddr, url: &str) -> io::Result<()> {
    let (_, rest) = url.split_once("://").ok_or_else(|| io::Error::other("no address"))?;
    let (host, path) = rest.split_once('/').ok_or_else(|| io::Error::other("no path"))?;
    let mut stream = TcpStream::connect(http_address).await?;
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {USER_AGENT}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
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
