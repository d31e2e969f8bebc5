//! TLS client configurations: opportunistic (any certificate) and verified (trusted name).
//!
//! Connections share one configuration of each kind, so that sessions are resumed across connections. The two kinds
//! keep separate sessions: a session begun without verification is never resumed where verification is required.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme, WantsVerifier,
};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

const SESSIONS_MAX: usize = 4_096;

/// Errors of the file with extra CA certificates.
#[derive(Debug, thiserror::Error)]
pub enum ExtraRootsError {
    #[error("cannot read {}: {source}; check that the file exists and that postroad's user may read it", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is not valid PEM: {source}; it should hold blocks of -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----", path.display())]
    Pem { path: PathBuf, source: pem::Error },
    #[error("{} holds no certificate; it needs the -----BEGIN CERTIFICATE----- blocks of the authorities", .0.display())]
    Empty(PathBuf),
    #[error("a certificate in {} cannot be an authority: {source}", path.display())]
    Unusable { path: PathBuf, source: rustls::Error },
}

/// Configurations with TLS 1.2 and 1.3. The server name that the caller passes to rustls is also sent as SNI.
#[derive(Clone)]
pub struct ClientTls {
    opportunistic: Arc<ClientConfig>,
    verified: Arc<ClientConfig>,
}

impl ClientTls {
    /// `extra_roots` is a PEM file of CA certificates to trust in addition to the public ones.
    pub fn new(extra_roots: Option<&Path>) -> Result<Self, ExtraRootsError> {
        let provider = Arc::new(default_provider());
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(path) = extra_roots {
            add_roots(&mut roots, path)?;
        }
        let any = Arc::new(AnyCertificate { provider: Arc::clone(&provider) });
        let opportunistic =
            builder(&provider).dangerous().with_custom_certificate_verifier(any).with_no_client_auth();
        let verified = builder(&provider).with_root_certificates(roots).with_no_client_auth();
        Ok(Self { opportunistic: with_resumption(opportunistic), verified: with_resumption(verified) })
    }

    /// Accepts any certificate (RFC 7435): protects against passive listeners only.
    pub fn opportunistic(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.opportunistic)
    }

    /// Accepts only certificates of a trusted CA for the server name.
    pub fn verified(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.verified)
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").finish_non_exhaustive()
    }
}

pub(crate) fn builder(provider: &Arc<CryptoProvider>) -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .expect("the provider has suites for TLS 1.2 and 1.3")
}

fn with_resumption(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
    Arc::new(config)
}

fn add_roots(roots: &mut RootCertStore, path: &Path) -> Result<(), ExtraRootsError> {
    let path = path.to_owned();
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(source) => return Err(ExtraRootsError::Read { path, source }),
    };
    let mut is_empty = true;
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = match certificate {
            Ok(certificate) => certificate,
            Err(source) => return Err(ExtraRootsError::Pem { path, source }),
        };
        if let Err(source) = roots.add(certificate) {
            return Err(ExtraRootsError::Unusable { path, source });
        }
        is_empty = false;
    }
    if is_empty { Err(ExtraRootsError::Empty(path)) } else { Ok(()) }
}

/// Accepts any certificate, but checks that the peer has the certificate's private key.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
