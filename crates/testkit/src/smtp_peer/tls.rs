//! TLS as the peer offers it: with any certificate, or broken.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use super::wire::{Stream, hold_open};
use crate::TestCertificate;

#[derive(Debug, Clone)]
pub enum PeerTls {
    /// Good, expired, self-signed or for another name: as the certificate is.
    With(TestCertificate),
    /// Says something that is not TLS.
    Garbage,
    /// Closes instead of shaking hands.
    HangUp,
    /// Never answers the handshake.
    Stall,
}

impl PeerTls {
    pub(super) async fn accept(&self, mut stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::With(certificate) => {
                let acceptor = TlsAcceptor::from(Arc::new(server_config(certificate)));
                Ok(Box::new(acceptor.accept(stream).await?))
            }
            Self::Garbage => {
                // After the client's first word, or it would be taken for plaintext after STARTTLS.
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

fn server_config(certificate: &TestCertificate) -> ServerConfig {
    let chain = CertificateDer::pem_slice_iter(certificate.certificate_pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .expect("a test certificate is PEM");
    let key = PrivateKeyDer::from_pem_slice(certificate.key_pem.as_bytes()).expect("a test key is PEM");
    // Named here, not taken from the process: the service under test may install another provider.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("the key belongs to the certificate")
}
