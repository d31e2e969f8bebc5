//! Fetches a policy file over HTTPS (RFC 8461 3.3): verified, without redirects, bounded in size and time. Servers and
//! policy hosts have shares of the permits. Domains whose last fetch failed have separate permits, so that other
//! domains never wait for them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::client::conn::http1::handshake;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use postroad_model::{DomainName, ServerId};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::MtaStsSettings;
use super::policy::{Policy, PolicyError};
use crate::dns::{AddressFailure, Dns};
use crate::fair_permits::{FairPermits, PermitLimits, Share};
use crate::guard;

const PATH: &str = "/.well-known/mta-sts.txt";
const BODY_BYTES_MAX: usize = 64 * 1024;
const FIRST_FETCH_LIMITS: PermitLimits = PermitLimits {
    running_max: 48,
    waiting_max: 1_024,
    of_server: Share::HALF,
    of_destination: Share::THIRD,
};
const AFTER_FAILURE_LIMITS: PermitLimits =
    PermitLimits { running_max: 16, waiting_max: 256, ..FIRST_FETCH_LIMITS };
/// Longest wait for a permit; short, because mail waits meanwhile. Without a permit, the fetch is left to a later
/// look-up.
const PERMIT_WAIT_MAX: Duration = Duration::from_secs(2);
/// Time for a fetch while other fetches for the same server wait for permits, or would have to.
const TIMEOUT_UNDER_PRESSURE: Duration = Duration::from_secs(4);
/// Time for TCP and TLS with one address. Short, so that a dead address leaves time for the next.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("{0}")]
    Address(#[from] AddressFailure),
    #[error("the host has no public address")]
    NotPublic,
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("the HTTP conversation failed: {0}")]
    Http(#[from] hyper::Error),
    #[error("the web server answered {0}; only 200 counts")]
    Status(StatusCode),
    #[error("the policy is larger than {BODY_BYTES_MAX} bytes")]
    Large,
    #[error("the answer broke off: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("it took too long")]
    Late,
    /// No request was sent: no permit became free in time, or too many look-ups wait for the host's addresses.
    #[error("too many policies are being fetched")]
    Busy,
    #[error("{0}")]
    Policy(#[from] PolicyError),
}

pub(super) struct Fetcher {
    dns: Dns,
    tls: TlsConnector,
    settings: MtaStsSettings,
    /// Permits for domains whose last fetch did not fail. The destinations of all permits are policy hosts' addresses.
    first: Arc<FairPermits<IpAddr>>,
    after_failure: Arc<FairPermits<IpAddr>>,
}

/// Rank of a fetch: each rank has separate permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FetchRank {
    /// No failed fetch of this domain's policy is known since the last success.
    First,
    /// The last fetch of this domain's policy failed.
    AfterFailure,
}

impl Fetcher {
    pub(super) fn new(dns: Dns, verified_tls: Arc<ClientConfig>, settings: &MtaStsSettings) -> Self {
        let (first, after_failure) =
            (FairPermits::new(FIRST_FETCH_LIMITS), FairPermits::new(AFTER_FAILURE_LIMITS));
        Self { dns, tls: TlsConnector::from(verified_tls), settings: settings.clone(), first, after_failure }
    }

    pub(super) async fn fetch(
        &self,
        domain: &DomainName,
        server: ServerId,
        rank: FetchRank,
    ) -> Result<Policy, FetchError> {
        let begun = Instant::now();
        let host = format!("mta-sts.{domain}");
        let lookup = self.addresses(&host, server);
        let addresses = tokio::time::timeout(self.settings.fetch_timeout, lookup).await;
        let addresses = addresses.unwrap_or(Err(FetchError::Late))?;
        let time_left = self.settings.fetch_timeout.saturating_sub(begun.elapsed());
        let permits = match rank {
            FetchRank::First => &self.first,
            FetchRank::AfterFailure => &self.after_failure,
        };
        // DNS answers come in any order: the lowest address identifies the host.
        let destination = *addresses.iter().min().ok_or(FetchError::NotPublic)?;
        let permit_wait = permits.take(Some(server), &destination);
        let permit = tokio::time::timeout(PERMIT_WAIT_MAX, permit_wait).await.ok().flatten();
        let _permit = permit.ok_or(FetchError::Busy)?;
        let is_contended = permits.is_contended(Some(server));
        let time_left = if is_contended { time_left.min(TIMEOUT_UNDER_PRESSURE) } else { time_left };
        let reading = async {
            let body = read_policy(self.connect(&host, &addresses).await?, &host).await?;
            Ok(Policy::parse(&body)?)
        };
        tokio::time::timeout(time_left, reading).await.unwrap_or(Err(FetchError::Late))
    }

    /// Whether a fetch for this server waits for a permit, or the next would have to.
    pub(super) fn is_contended(&self, server: ServerId) -> bool {
        self.first.is_contended(Some(server)) || self.after_failure.is_contended(Some(server))
    }

    /// Addresses of the policy host; at least one.
    async fn addresses(&self, host: &str, server: ServerId) -> Result<Vec<IpAddr>, FetchError> {
        let mut addresses = match self.dns.for_server(server).addresses(host).await {
            Err(AddressFailure::Busy) => return Err(FetchError::Busy),
            found => found?,
        };
        addresses.retain(|address| self.settings.allow_private || guard::is_public(*address));
        if addresses.is_empty() { Err(FetchError::NotPublic) } else { Ok(addresses) }
    }

    async fn connect(&self, host: &str, addresses: &[IpAddr]) -> Result<TlsStream<TcpStream>, FetchError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| FetchError::Connect(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        let mut failure = FetchError::NotPublic;
        for address in addresses {
            match tokio::time::timeout(CONNECT_TIMEOUT, self.connect_to(*address, name.clone())).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = FetchError::Connect(error),
                Err(_) => failure = FetchError::Late,
            }
        }
        Err(failure)
    }

    async fn connect_to(
        &self,
        address: IpAddr,
        name: ServerName<'static>,
    ) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(SocketAddr::new(address, self.settings.port)).await?;
        self.tls.connect(name, stream).await
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("settings", &self.settings).finish_non_exhaustive()
    }
}

async fn read_policy(stream: TlsStream<TcpStream>, host: &str) -> Result<Bytes, FetchError> {
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    let request = Request::get(PATH)
        .header(header::HOST, host)
        .header(header::USER_AGENT, "postroad")
        .body(Empty::<Bytes>::new())
        .expect("a host name is a valid header value");
    let exchange = async move {
        let response = sender.send_request(request).await?;
        // RFC 8461 3.3: redirects are not followed, and only 200 is a policy.
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status(response.status()));
        }
        match Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(FetchError::Large),
            Err(error) => Err(FetchError::Body(error)),
        }
    };
    // The connection is polled here, not in a separate task, so that it ends with the exchange at the caller's timeout.
    let mut connection = std::pin::pin!(connection);
    let mut exchange = std::pin::pin!(exchange);
    match futures_util::future::select(exchange.as_mut(), connection.as_mut()).await {
        futures_util::future::Either::Left((result, _)) => result,
        // The connection has ended; the exchange has all its bytes.
        futures_util::future::Either::Right((_, exchange)) => exchange.await,
    }
}
