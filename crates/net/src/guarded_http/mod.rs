//! HTTP client for URLs that customers or strangers choose; the client must not give them access to the local network.
//!
//! It dials exactly the address that was checked after DNS. It follows no redirects, uses no proxies, reads
//! little of the answer, and everything has a timeout. Connections are kept for the next exchange with the same
//! origin. On failure the error class says where the problem is. Nothing is retried, except an exchange whose
//! kept connection failed before the answer began.

mod dial;
mod exchange;
mod exempt;
mod failure;
mod pool;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use ipnet::IpNet;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{Shared, Timestamp, WebhookUrl};
use rustls::ClientConfig;
use tokio::time::Instant;

use crate::dns::Dns;
use crate::guard::Guard;
use dial::Dialler;
pub use exempt::TokenUrls;
pub use failure::{FailureClass, HttpFailure};
use pool::{Origin, Pool};

#[derive(Debug, Clone)]
pub struct GuardedHttpSettings {
    /// Networks that may be dialled in addition to the public internet.
    pub allowed: Vec<IpNet>,
    /// Time for TCP and TLS, over all addresses of the host.
    pub connect_timeout: Duration,
    /// Time from the DNS look-up to the last byte of the answer.
    pub exchange_timeout: Duration,
    /// Maximum number of bytes read of an answer's body; then the connection is closed.
    pub answer_bytes_max: usize,
    /// Maximum number of idle connections kept per origin.
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

/// HTTP client; clones share their connections.
#[derive(Clone)]
pub struct GuardedHttp {
    inner: Shared<Inner>,
}

struct Inner {
    dialler: Dialler,
    pool: Arc<Pool>,
    /// URLs for which private addresses may be dialled.
    exempt: OnceLock<Vec<TokenUrls>>,
    settings: GuardedHttpSettings,
}

/// Answer of the receiver, with any status.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    pub status: u16,
    /// Value of `Retry-After` as sent.
    pub retry_after: Option<String>,
    /// Value of `Content-Type` as sent.
    pub content_type: Option<String>,
    /// Beginning of the body.
    pub body: Bytes,
    /// Whether the body is longer than the part that was read.
    pub is_cut: bool,
    /// Address that was dialled.
    pub address: IpAddr,
    /// Time for DNS, TCP and TLS; `None` on a kept connection.
    pub connected_in: Option<Duration>,
    /// Expiry of the receiver's certificate; `None` without TLS, or if the certificate cannot be parsed.
    pub certificate_expires_at: Option<Timestamp>,
}

#[boxed_futures]
impl GuardedHttp {
    /// `verified_tls` is the TLS configuration that checks certificates.
    pub fn new(dns: Dns, verified_tls: Arc<ClientConfig>, settings: GuardedHttpSettings) -> Self {
        let guard = Guard::allowing(settings.allowed.clone());
        let dialler = Dialler::new(dns, verified_tls, guard, settings.connect_timeout);
        let pool = Arc::new(Pool::new(settings.idle_per_origin_max, settings.idle_max, settings.idle_for));
        Self { inner: Shared::new(Inner { dialler, pool, exempt: OnceLock::new(), settings }) }
    }

    /// Lets these URLs be dialled at any address. For the service's own URLs, whose addresses are often private. The
    /// URLs are known only once the service listens. Later calls are ignored.
    pub fn set_exempt(&self, urls: Vec<TokenUrls>) {
        self.inner.exempt.get_or_init(|| urls);
    }

    /// Sends one POST; `headers` are added to `Host` and `Content-Length`.
    pub async fn post(
        &self,
        url: &WebhookUrl,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<HttpAnswer, HttpFailure> {
        self.exchange_with_timeout(&Method::POST, url, headers, body).await
    }

    /// Sends one GET; `headers` are added to `Host`.
    pub async fn get(&self, url: &WebhookUrl, headers: &HeaderMap) -> Result<HttpAnswer, HttpFailure> {
        self.exchange_with_timeout(&Method::GET, url, headers, &Bytes::new()).await
    }

    async fn exchange_with_timeout(
        &self,
        method: &Method,
        url: &WebhookUrl,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<HttpAnswer, HttpFailure> {
        let deadline = Instant::now() + self.inner.settings.exchange_timeout;
        tokio::time::timeout_at(deadline, self.inner.exchange(method, url, headers, body))
            .await
            .unwrap_or(Err(HttpFailure::Late(self.inner.settings.exchange_timeout)))
    }

    /// Sends an empty POST, to find out whether a server answers, and on HTTPS whether its certificate is good.
    pub async fn reach(&self, url: &WebhookUrl) -> Result<HttpAnswer, HttpFailure> {
        self.post(url, &HeaderMap::new(), &Bytes::new()).await
    }
}

impl Inner {
    async fn exchange(
        &self,
        method: &Method,
        url: &WebhookUrl,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<HttpAnswer, HttpFailure> {
        let is_exempt = self.exempt.get().is_some_and(|all| all.iter().any(|urls| urls.contains(url)));
        // A connection that was opened for an exempt URL is kept for exempt URLs only.
        let origin = Origin::of(url, is_exempt);
        let request = || exchange::build_request(method, url, headers, body);
        if let Some(mut pooled) = self.pool.take(&origin) {
            match exchange::run(&mut pooled, request(), self.settings.answer_bytes_max).await {
                Ok(received) => return Ok(self.finish(origin, pooled, received, None)),
                // The kept connection has probably been closed, which says nothing about the receiver.
                Err(exchange::ExchangeFailure::BeforeAnswer(_)) => {}
                Err(exchange::ExchangeFailure::InsideAnswer(failure)) => return Err(failure),
            }
        }
        let begun = Instant::now();
        let mut fresh = self.dialler.connect(url, is_exempt).await?;
        let connected_in = begun.elapsed();
        let received = exchange::run(&mut fresh, request(), self.settings.answer_bytes_max).await;
        Ok(self.finish(origin, fresh, received?, Some(connected_in)))
    }

    fn finish(
        &self,
        origin: Origin,
        connection: pool::Connection,
        received: exchange::ReceivedAnswer,
        connected_in: Option<Duration>,
    ) -> HttpAnswer {
        let (address, certificate_expires_at) = (connection.address, connection.certificate_expires_at);
        if received.is_reusable {
            self.pool.keep(origin, connection);
        }
        let exchange::ReceivedAnswer { status, retry_after, content_type, body, is_cut, .. } = received;
        HttpAnswer {
            status,
            retry_after,
            content_type,
            body,
            is_cut,
            address,
            connected_in,
            certificate_expires_at,
        }
    }
}

impl fmt::Debug for GuardedHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedHttp").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}
