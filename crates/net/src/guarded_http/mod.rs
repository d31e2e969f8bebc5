//! Posting to addresses that strangers chose, without becoming their way into our network.
//!
//! The address that is dialled is the one that was checked, after DNS; no redirects, no proxies, little of the answer,
//! and an end to everything. Connections are kept for the next exchange with the same origin, so a busy receiver costs
//! no handshake each time. On failure: the class says whose trouble it is; nothing is tried twice but an exchange whose
//! kept connection had ended meanwhile.

mod dial;
mod exchange;
mod failure;
mod pool;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::HeaderMap;
use ipnet::IpNet;
use postroad_model::WebhookUrl;
use rustls::ClientConfig;
use tokio::time::Instant;

use crate::dns::Dns;
use crate::guard::Guard;
use dial::Dialler;
pub use failure::{FailureClass, PostFailure};
use pool::{Origin, Pool};

#[derive(Debug, Clone)]
pub struct GuardedHttpSettings {
    /// What may be dialled beside the public internet.
    pub allowed: Vec<IpNet>,
    /// TCP and TLS, all addresses of the host together.
    pub connect_timeout: Duration,
    /// From the first question to the DNS to the last byte of the answer.
    pub exchange_timeout: Duration,
    /// What is read of an answer's body; then the connection is closed.
    pub answer_bytes_max: usize,
    /// Connections kept for the next exchange, for one origin.
    pub idle_per_origin_max: usize,
    pub idle_max: usize,
    pub idle_for: Duration,
}

impl Default for GuardedHttpSettings {
    fn default() -> Self {
        Self {
            allowed: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            exchange_timeout: Duration::from_secs(15),
            answer_bytes_max: 16 * 1024,
            idle_per_origin_max: 8,
            idle_max: 512,
            idle_for: Duration::from_secs(20),
        }
    }
}

/// Clones share the connections.
#[derive(Clone)]
pub struct GuardedHttp {
    inner: Arc<Inner>,
}

struct Inner {
    dialler: Dialler,
    pool: Arc<Pool>,
    settings: GuardedHttpSettings,
}

/// What came back, whatever it says.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    pub status: u16,
    /// As it was sent.
    pub retry_after: Option<String>,
    /// The first bytes.
    pub body: Bytes,
    /// Where it came from.
    pub address: IpAddr,
    /// DNS, TCP and TLS; `None` on a kept connection.
    pub connected_in: Option<Duration>,
}

impl GuardedHttp {
    /// `verified` decides which certificates are good.
    pub fn new(dns: Dns, verified: Arc<ClientConfig>, settings: GuardedHttpSettings) -> Self {
        let guard = Guard::allowing(settings.allowed.clone());
        let dialler = Dialler::new(dns, verified, guard, settings.connect_timeout);
        let pool = Arc::new(Pool::new(settings.idle_per_origin_max, settings.idle_max, settings.idle_for));
        Self { inner: Arc::new(Inner { dialler, pool, settings }) }
    }

    /// One POST; `headers` beside `Host` and `Content-Length`.
    pub async fn post(
        &self,
        url: &WebhookUrl,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<HttpAnswer, PostFailure> {
        let deadline = Instant::now() + self.inner.settings.exchange_timeout;
        tokio::time::timeout_at(deadline, self.inner.post(url, headers, body))
            .await
            .unwrap_or(Err(PostFailure::Late(self.inner.settings.exchange_timeout)))
    }
}

impl Inner {
    async fn post(
        &self,
        url: &WebhookUrl,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<HttpAnswer, PostFailure> {
        let origin = Origin::of(url);
        let request = || exchange::request(url, headers, body);
        if let Some(mut kept) = self.pool.take(&origin) {
            match exchange::run(&mut kept, request(), self.settings.answer_bytes_max).await {
                Ok(done) => return Ok(self.finish(origin, kept, done, None)),
                // It ended while nobody looked: that says nothing about the receiver.
                Err(exchange::Broken::BeforeAnswer(_)) => {}
                Err(exchange::Broken::Inside(failure)) => return Err(failure),
            }
        }
        let begun = Instant::now();
        let mut fresh = self.dialler.connect(url).await?;
        let connected_in = begun.elapsed();
        let done = exchange::run(&mut fresh, request(), self.settings.answer_bytes_max).await;
        Ok(self.finish(origin, fresh, done?, Some(connected_in)))
    }

    fn finish(
        &self,
        origin: Origin,
        connection: pool::Connection,
        done: exchange::Done,
        connected_in: Option<Duration>,
    ) -> HttpAnswer {
        let address = connection.address;
        if done.is_whole {
            self.pool.keep(origin, connection);
        }
        let exchange::Done { status, retry_after, body, .. } = done;
        HttpAnswer { status, retry_after, body, address, connected_in }
    }
}

impl fmt::Debug for GuardedHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedHttp").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}
