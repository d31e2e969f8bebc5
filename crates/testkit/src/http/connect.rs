//! Opens one HTTP/1.1 connection, plain or TLS.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

pub(super) type Connection = SendRequest<Full<Bytes>>;

/// Address that a client connects to.
#[derive(Clone)]
pub(super) struct Origin {
    /// Host and port as in the URL; also the value of `Host`.
    pub(super) authority: String,
    /// Address to connect from; `None` for any.
    pub(super) local: Option<IpAddr>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Origin {
    /// Panics if `base_url` is not `scheme://host:port`, which is an error of the test.
    pub(super) fn parse(base_url: &str, scheme: &str, ca_pem: Option<&str>) -> Self {
        let rest = base_url.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://"));
        let rest = rest.unwrap_or_else(|| panic!("{base_url} does not start with {scheme}://"));
        let authority = rest.trim_end_matches('/').to_owned();
        let (host, _port) = authority.rsplit_once(':').expect("the base URL names a port");
        let host = host.trim_matches(['[', ']']);
        let tls = ca_pem.map(|pem| {
            let name = ServerName::try_from(host.to_owned()).expect("the host is a DNS name or an address");
            (TlsConnector::from(Arc::new(config_trusting(pem))), name)
        });
        Self { authority, local: None, tls }
    }

    pub(super) async fn connect(&self) -> io::Result<Connection> {
        let stream = match self.local {
            None => TcpStream::connect(&self.authority).await?,
            Some(local) => connect_from(local, &self.authority).await?,
        };
        stream.set_nodelay(true)?;
        match &self.tls {
            None => http_handshake(stream).await,
            Some((connector, name)) => http_handshake(connector.connect(name.clone(), stream).await?).await,
        }
    }
}

/// `authority` is an IPv4 address and a port.
async fn connect_from(local: IpAddr, authority: &str) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(local, 0))?;
    socket.connect(authority.parse().map_err(io::Error::other)?).await
}

async fn http_handshake(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> io::Result<Connection> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // An error of the connection reaches the request in progress.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn config_trusting(ca_pem: &str) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        roots.add(certificate.expect("the authority is PEM")).expect("the authority is a certificate");
    }
    // Explicit, because the service under test may install another default provider.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
