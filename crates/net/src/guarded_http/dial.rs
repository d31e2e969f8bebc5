//! Opens a connection for a URL: resolve, check, connect, TLS. The address checked is the address dialled.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1;
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use postroad_model::{WebhookHost, WebhookUrl};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::failure::HttpFailure;
use super::pool::Connection;
use crate::certificate_expiry::expires_at;
use crate::dns::Dns;
use crate::guard::Guard;

/// Maximum number of addresses of a host tried in one exchange.
const ADDRESSES_TRIED_MAX: usize = 4;
/// Largest head of an answer.
const HEAD_BYTES_MAX: usize = 32 * 1024;

pub(super) struct Dialler {
    dns: Dns,
    tls: TlsConnector,
    guard: Guard,
    connect_timeout: Duration,
}

impl Dialler {
    pub(super) fn new(
        dns: Dns,
        verified_tls: Arc<ClientConfig>,
        guard: Guard,
        connect_timeout: Duration,
    ) -> Self {
        Self { dns, tls: TlsConnector::from(verified_tls), guard, connect_timeout }
    }

    /// `is_exempt`: any address of the host may be dialled.
    pub(super) async fn connect(&self, url: &WebhookUrl, is_exempt: bool) -> Result<Connection, HttpFailure> {
        let dialable = |address: IpAddr| {
            if is_exempt { Some(address.to_canonical()) } else { self.guard.check(address) }
        };
        let mut addresses: Vec<IpAddr> = self.resolve(url).await?.into_iter().filter_map(dialable).collect();
        if addresses.is_empty() {
            return Err(HttpFailure::RefusedAddress);
        }
        addresses.truncate(ADDRESSES_TRIED_MAX);
        let deadline = Instant::now() + self.connect_timeout;
        let mut failure = HttpFailure::ConnectTimeout(self.connect_timeout);
        let count = addresses.len() as u32;
        for (index, address) in (0..count).zip(addresses) {
            // A dead address leaves the other addresses their share of the time.
            let share = deadline.saturating_duration_since(Instant::now()) / (count - index);
            match tokio::time::timeout(share, self.connect_to(address, url)).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => failure = error,
                Err(_) => failure = HttpFailure::ConnectTimeout(self.connect_timeout),
            }
        }
        Err(failure)
    }

    async fn resolve(&self, url: &WebhookUrl) -> Result<Vec<IpAddr>, HttpFailure> {
        match url.host() {
            WebhookHost::Address(address) => Ok(vec![address]),
            // RFC 6761 6.3: these names are never looked up in the DNS. The guard decides whether loopback addresses
            // may be dialled.
            WebhookHost::Name(name) if is_localhost(&name) => {
                Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
            }
            WebhookHost::Name(name) => Ok(self.dns.addresses(&name).await?),
        }
    }

    async fn connect_to(&self, address: IpAddr, url: &WebhookUrl) -> Result<Connection, HttpFailure> {
        let stream = TcpStream::connect(SocketAddr::new(address, url.port())).await;
        let stream = stream.map_err(HttpFailure::Connect)?;
        // The body's packet must not wait for the peer's delayed acknowledgement of the head (Nagle).
        stream.set_nodelay(true).map_err(HttpFailure::Connect)?;
        if !url.is_https() {
            return start_http(TokioIo::new(stream), address).await;
        }
        let name = match url.host() {
            WebhookHost::Name(name) => ServerName::try_from(name)
                .map_err(|error| HttpFailure::Tls(io::Error::new(io::ErrorKind::InvalidInput, error)))?,
            WebhookHost::Address(address) => ServerName::from(address),
        };
        let stream = self.tls.connect(name, stream).await.map_err(HttpFailure::Tls)?;
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates().and_then(|chain| chain.first());
        let certificate_expires_at = certificate.and_then(expires_at);
        let mut connection = start_http(TokioIo::new(stream), address).await?;
        connection.certificate_expires_at = certificate_expires_at;
        Ok(connection)
    }
}

async fn start_http(
    stream: impl Read + Write + Unpin + Send + 'static,
    address: IpAddr,
) -> Result<Connection, HttpFailure> {
    let (sender, driver) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(stream)
        .await
        .map_err(HttpFailure::Protocol)?;
    // The task is aborted when the connection is dropped: further bytes from the receiver are not read.
    let driver = tokio::spawn(async move { drop(driver.await) });
    Ok(Connection::new(sender, driver, address))
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}
