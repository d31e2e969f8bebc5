//! A socket, plain or with TLS.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + Sync {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync> Stream for T {}

/// TLS parameters agreed in the handshake.
#[derive(Debug, Clone)]
pub(crate) struct TlsFacts {
    /// Version and cipher.
    pub(crate) text: String,
}

pub(crate) async fn tls_handshake(
    stream: Box<dyn Stream>,
    config: Arc<rustls::ClientConfig>,
    host: &str,
) -> Result<(Box<dyn Stream>, TlsFacts), String> {
    let name = ServerName::try_from(host.to_owned()).map_err(|e| format!("{host}: {e}"))?;
    let stream = TlsConnector::from(config).connect(name, stream).await.map_err(|error| explain(&error))?;
    let (_, session) = stream.get_ref();
    let version = session.protocol_version().and_then(|version| version.as_str().map(shown_version));
    let cipher = session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
    let text = [version, cipher].into_iter().flatten().collect::<Vec<_>>().join(" ");
    Ok((Box::new(stream), TlsFacts { text }))
}

fn shown_version(name: &str) -> &str {
    match name {
        "TLSv1_3" => "TLSv1.3",
        "TLSv1_2" => "TLSv1.2",
        other => other,
    }
}

fn explain(error: &std::io::Error) -> String {
    let tls_error = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    // Errors of our own verifiers: rustls would show them in debug form.
    if let Some(rustls::Error::InvalidCertificate(rustls::CertificateError::Other(own))) = tls_error {
        return own.to_string();
    }
    match error.get_ref() {
        Some(inner) => inner.to_string(),
        None => error.to_string(),
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum DialError {
    /// A problem of this machine, which lacks the source address or has no sockets left; no host was tried.
    Local(std::io::Error),
    Remote(std::io::Error),
}

/// Connects to `to`, from the source address `from` if it is set.
pub(crate) async fn connect(to: SocketAddr, from: Option<IpAddr>) -> Result<TcpStream, DialError> {
    let socket = match to {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let socket = socket.map_err(DialError::Local)?;
    if let Some(address) = from {
        socket.bind((address, 0).into()).map_err(DialError::Local)?;
    }
    let stream = socket.connect(to).await.map_err(DialError::Remote)?;
    stream.set_nodelay(true).map_err(DialError::Remote)?;
    Ok(stream)
}
