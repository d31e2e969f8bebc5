//! Fetches a policy file over HTTPS (RFC 8461 3.3): verified, without redirects, bounded in size and time.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::client::conn::http1::handshake;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use postroad_model::DomainName;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::MtaStsSettings;
use super::policy::{Policy, PolicyError};
use crate::dns::{AddressFailure, Dns};
use crate::guard;

const PATH: &str = "/.well-known/mta-sts.txt";
const BODY_BYTES_MAX: usize = 64 * 1024;
const FETCHES_AT_ONCE_MAX: usize = 64;
/// Short, so that a dead address leaves time for the next.
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
    #[error("{0}")]
    Policy(#[from] PolicyError),
}

pub(super) struct Fetcher {
    dns: Dns,
    tls: TlsConnector,
    settings: MtaStsSettings,
    permits: Semaphore,
}

impl Fetcher {
    pub(super) fn new(dns: Dns, verified: Arc<ClientConfig>, settings: &MtaStsSettings) -> Self {
        let permits = Semaphore::new(FETCHES_AT_ONCE_MAX);
        Self { dns, tls: TlsConnector::from(verified), settings: settings.clone(), permits }
    }

    pub(super) async fn fetch(&self, domain: &DomainName) -> Result<Policy, FetchError> {
        let whole = async {
            let _permit = self.permits.acquire().await.map_err(|_| FetchError::Late)?;
            let host = format!("mta-sts.{domain}");
            let body = read_policy(self.connect(&host).await?, &host).await?;
            Ok(Policy::parse(&body)?)
        };
        tokio::time::timeout(self.settings.fetch_timeout, whole).await.unwrap_or(Err(FetchError::Late))
    }

    async fn connect(&self, host: &str) -> Result<TlsStream<TcpStream>, FetchError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| FetchError::Connect(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        let mut addresses = self.dns.addresses(host).await?;
        addresses.retain(|address| self.settings.allow_private || guard::is_public(*address));
        let mut failure = FetchError::NotPublic;
        for address in addresses {
            match tokio::time::timeout(CONNECT_TIMEOUT, self.connect_to(address, name.clone())).await {
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
    // Polled in this task: both end when the time is over.
    let mut connection = std::pin::pin!(connection);
    let mut exchange = std::pin::pin!(exchange);
    match futures_util::future::select(exchange.as_mut(), connection.as_mut()).await {
        futures_util::future::Either::Left((result, _)) => result,
        // The connection has ended; the exchange has all its bytes.
        futures_util::future::Either::Right((_, exchange)) => exchange.await,
    }
}
