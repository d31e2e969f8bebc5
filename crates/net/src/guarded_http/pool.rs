//! Idle connections for later exchanges: few, for a short time, cleaned up when one is returned.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use parking_lot::Mutex;
use postroad_model::{Timestamp, WebhookUrl};
use tokio::task::JoinHandle;
use tokio::time::Instant;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    is_https: bool,
    authority: String,
    /// Whether the URL is exempt, so that the connection's address was not checked.
    is_exempt: bool,
}

impl Origin {
    pub(super) fn of(url: &WebhookUrl, is_exempt: bool) -> Self {
        Self { is_https: url.is_https(), authority: url.authority(), is_exempt }
    }
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    pub(super) address: IpAddr,
    /// Expiry of the receiver's certificate; `None` without TLS, or if the certificate cannot be parsed.
    pub(super) certificate_expires_at: Option<Timestamp>,
    driver: JoinHandle<()>,
}

impl Connection {
    pub(super) fn new(sender: SendRequest<Full<Bytes>>, driver: JoinHandle<()>, address: IpAddr) -> Self {
        Self { sender, address, certificate_expires_at: None, driver }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

#[derive(Debug)]
struct IdleConnection {
    connection: Connection,
    until: Instant,
}

#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<IdleConnections>,
    per_origin_max: usize,
    max: usize,
    idle_for: Duration,
}

#[derive(Debug)]
struct IdleConnections {
    by_origin: HashMap<Origin, Vec<IdleConnection>>,
    count: usize,
    swept_at: Instant,
}

impl Pool {
    pub(super) fn new(per_origin_max: usize, max: usize, idle_for: Duration) -> Self {
        let idle_connections =
            IdleConnections { by_origin: HashMap::new(), count: 0, swept_at: Instant::now() };
        Self { idle: Mutex::new(idle_connections), per_origin_max, max, idle_for }
    }

    /// Takes the most recently used connection, which is the least likely to have closed.
    pub(super) fn take(&self, origin: &Origin) -> Option<Connection> {
        let now = Instant::now();
        let mut idle_connections = self.idle.lock();
        loop {
            let list = idle_connections.by_origin.get_mut(origin)?;
            let Some(idle) = list.pop() else {
                idle_connections.by_origin.remove(origin);
                return None;
            };
            idle_connections.count -= 1;
            if idle.until > now && idle.connection.sender.is_ready() {
                return Some(idle.connection);
            }
        }
    }

    pub(super) fn keep(&self, origin: Origin, connection: Connection) {
        let now = Instant::now();
        let mut idle_connections = self.idle.lock();
        if idle_connections.count >= self.max || idle_connections.swept_at + self.idle_for <= now {
            idle_connections.sweep(now);
        }
        let of_origin = idle_connections.by_origin.get(&origin).map_or(0, Vec::len);
        if idle_connections.count < self.max && of_origin < self.per_origin_max {
            idle_connections.count += 1;
            idle_connections
                .by_origin
                .entry(origin)
                .or_default()
                .push(IdleConnection { connection, until: now + self.idle_for });
        }
    }
}

impl IdleConnections {
    fn sweep(&mut self, now: Instant) {
        self.by_origin.retain(|_, list| {
            list.retain(|idle| idle.until > now && !idle.connection.sender.is_closed());
            !list.is_empty()
        });
        self.count = self.by_origin.values().map(Vec::len).sum();
        self.swept_at = now;
    }
}
