//! TLS of the peer: with any certificate, or broken.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use super::wire::{Stream, hold_open};
use crate::TestCertificate;

#[derive(Debug, Clone)]
pub enum PeerTls {
    /// TLS with this certificate: valid, expired, self-signed or for another name.
    With(TestCertificate),
    /// Sends something that is not TLS.
    Garbage,
    /// Closes instead of performing the handshake.
    HangUp,
    /// Never answers the handshake.
    Stall,
}

impl PeerTls {
    pub(super) async fn accept(&self, mut stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::With(certificate) => {
                let acceptor = TlsAcceptor::from(Arc::new(certificate.server_config()));
                Ok(Box::new(acceptor.accept(stream).await?))
            }
            Self::Garbage => {
                // Wait for the client's first bytes: an earlier answer would count as plaintext after STARTTLS.
                stream.read_exact(&mut [0; 5]).await?;
                stream.write_all(b"this is not TLS\r\n").await?;
                stream.shutdown().await?;
                hold_open(&mut stream).await;
                Err(io::ErrorKind::InvalidData.into())
            }
            Self::HangUp => Err(io::ErrorKind::ConnectionAborted.into()),
            Self::Stall => {
                hold_open(&mut stream).await;
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }
}
