//! TCP proxy in front of PostgreSQL that a test can cut, so that the server "dies" for one client only.
//!
//! It runs on its own thread, so that a test may block (for example while starting a daemon) while traffic
//! flows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::eventually_blocking;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkState {
    Open,
    /// Connections are dropped; new ones are closed before a byte is read.
    Cut,
    /// Connections stay and new ones are accepted, but no byte moves: a partition, not a crash.
    Stalled,
    /// The proxy has stopped.
    Gone,
}

/// Running proxy. Give `url()` to the service instead of the database's own URL.
#[derive(Debug)]
pub struct PgProxy {
    url: String,
    link: watch::Sender<LinkState>,
    connections: Arc<AtomicUsize>,
}

impl PgProxy {
    /// `target` is a PostgreSQL URL with an address and a port, such as `Database::url` returns.
    pub fn start(target: &str) -> Self {
        let (before, address, after) = split_address(target);
        let address: SocketAddr = address.parse().expect("the target URL names an IP address and a port");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        listener.set_nonblocking(true).expect("a fresh socket can be made non-blocking");
        let own = listener.local_addr().expect("a bound socket has an address");
        let (link, seen) = watch::channel(LinkState::Open);
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a small runtime needs only a few file descriptors");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("the runtime is running");
                relay(listener, address, seen, counter).await;
            });
        });
        Self { url: format!("{before}{own}{after}"), link, connections }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Closes all connections; returns when none is left.
    pub fn cut(&self) {
        self.link.send_replace(LinkState::Cut);
        eventually_blocking(Duration::from_secs(5), || match self.connections.load(Ordering::SeqCst) {
            0 => Ok(()),
            open => Err(format!("{open} connections of the proxy are not closed")),
        });
    }

    /// Stops all traffic without closing anything, until `restore` or `cut`.
    pub fn stall(&self) {
        self.link.send_replace(LinkState::Stalled);
    }

    pub fn restore(&self) {
        self.link.send_replace(LinkState::Open);
    }
}

impl Drop for PgProxy {
    fn drop(&mut self) {
        self.link.send_replace(LinkState::Gone);
    }
}

async fn relay(
    listener: TcpListener,
    target: SocketAddr,
    mut link: watch::Receiver<LinkState>,
    connections: Arc<AtomicUsize>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = link.wait_for(|link| *link == LinkState::Gone) => return,
        };
        let Ok((client, _)) = accepted else { continue };
        // Counted before the state is checked, so that `cut` cannot miss a connection that is about to start.
        connections.fetch_add(1, Ordering::SeqCst);
        if *link.borrow() == LinkState::Cut {
            drop(client);
            connections.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (mut cut, link, connections) = (link.clone(), link.clone(), Arc::clone(&connections));
        tokio::spawn(async move {
            tokio::select! {
                () = carry(client, target, link) => {}
                _ = cut.wait_for(|link| *link == LinkState::Cut) => {}
            }
            connections.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn carry(client: TcpStream, target: SocketAddr, link: watch::Receiver<LinkState>) {
    let Ok(server) = TcpStream::connect(target).await else { return };
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    tokio::select! {
        () = pump(client_in, server_out, link.clone()) => {}
        () = pump(server_in, client_out, link) => {}
    }
}

/// Copies until either side closes; bytes read just before a stall wait for its end.
async fn pump(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut link: watch::Receiver<LinkState>,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let is_open = link.wait_for(|link| *link == LinkState::Open).await.is_ok();
        if !is_open || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// Splits a URL into `postgres://user@`, `127.0.0.1:5432` and `/name`.
fn split_address(url: &str) -> (&str, &str, &str) {
    let scheme_end = url.find("://").expect("the target is a URL") + 3;
    let end = url[scheme_end..].find(['/', '?']).map_or(url.len(), |at| scheme_end + at);
    let start = url[scheme_end..end].rfind('@').map_or(scheme_end, |at| scheme_end + at + 1);
    (&url[..start], &url[start..end], &url[end..])
}
