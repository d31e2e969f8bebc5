//! TLS as a client, against a server with good and bad certificates.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use postroad_net::client_tls::{ClientTls, ExtraRootsError};
use postroad_testkit::{HttpsServer, TestCertificate};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, HandshakeKind, ServerConfig, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

const HOST: &str = "mx.example.com";

fn tls_trusting(ca_pem: &str) -> ClientTls {
    let (_folder, path) = write_file(ca_pem);
    ClientTls::new(Some(&path)).unwrap()
}

fn write_file(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("roots.pem");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// Connects and reads the answer to its end, including the session tickets, so that the next visit can resume.
async fn visit(server: &HttpsServer, config: Arc<ClientConfig>) -> io::Result<HandshakeKind> {
    let stream = TcpStream::connect(server.address()).await?;
    let name = ServerName::try_from(HOST).unwrap();
    let mut stream = TlsConnector::from(config).connect(name, stream).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: mx.example.com\r\n\r\n").await?;
    stream.read_to_end(&mut Vec::new()).await?;
    Ok(stream.get_ref().1.handshake_kind().unwrap())
}

#[tokio::test]
async fn verified_tls_accepts_only_the_right_name_from_a_trusted_authority() {
    let good = TestCertificate::for_names(&[HOST]);
    let server = HttpsServer::start(&good);
    visit(&server, tls_trusting(&good.ca_pem).verified()).await.unwrap();
    visit(&server, ClientTls::new(None).unwrap().verified()).await.unwrap_err();
    for bad in [
        TestCertificate::for_names(&["other.example.com"]),
        TestCertificate::expired(&[HOST]),
        TestCertificate::self_signed(&[HOST]),
    ] {
        server.set_certificate(&bad);
        visit(&server, tls_trusting(&bad.ca_pem).verified()).await.unwrap_err();
    }
}

#[tokio::test]
async fn opportunistic_tls_accepts_any_certificate() {
    let tls = ClientTls::new(None).unwrap();
    let server = HttpsServer::start(&TestCertificate::for_names(&[HOST]));
    for certificate in [
        TestCertificate::for_names(&["other.example.com"]),
        TestCertificate::expired(&[HOST]),
        TestCertificate::self_signed(&[HOST]),
    ] {
        server.set_certificate(&certificate);
        visit(&server, tls.opportunistic()).await.unwrap();
    }
}

#[tokio::test]
async fn sessions_are_resumed_but_never_from_opportunistic_to_verified() {
    let certificate = TestCertificate::self_signed(&[HOST]);
    let server = HttpsServer::start(&certificate);
    let tls = tls_trusting(&certificate.ca_pem);
    assert_ne!(visit(&server, tls.opportunistic()).await.unwrap(), HandshakeKind::Resumed);
    assert_eq!(visit(&server, tls.opportunistic()).await.unwrap(), HandshakeKind::Resumed);
    visit(&server, tls.verified()).await.unwrap_err();
}

/// Shows the certificate of one key and signs with another.
fn impostor(version: &'static SupportedProtocolVersion) -> ServerConfig {
    let [shown, own] = [(); 2].map(|()| TestCertificate::for_names(&[HOST]));
    let provider = Arc::new(default_provider());
    let chain = vec![CertificateDer::from_pem_slice(shown.certificate_pem.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(own.key_pem.as_bytes()).unwrap();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let resolver = SingleCertAndKey::from(CertifiedKey::new(chain, key));
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver))
}

#[tokio::test]
async fn opportunistic_tls_requires_the_private_key_of_the_certificate() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let (ours, theirs) = tokio::io::duplex(65_536);
        let server = TlsAcceptor::from(Arc::new(impostor(version))).accept(theirs);
        let config = ClientTls::new(None).unwrap().opportunistic();
        let client = TlsConnector::from(config).connect(ServerName::try_from(HOST).unwrap(), ours);
        let (connected, _) = tokio::join!(client, server);
        let error = connected.unwrap_err().to_string();
        assert!(error.contains("BadSignature"), "{version:?}: {error}");
    }
}

#[test]
fn error_names_a_file_without_authorities() {
    let (_folder, path) = write_file("nothing here");
    assert!(matches!(ClientTls::new(Some(&path)), Err(ExtraRootsError::Empty(_))));
    let (_folder, path) = write_file("-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n");
    assert!(matches!(ClientTls::new(Some(&path)), Err(ExtraRootsError::Pem { .. })));
    let (_folder, path) = write_file("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert!(matches!(ClientTls::new(Some(&path)), Err(ExtraRootsError::Unusable { .. })));
    let (folder, path) = write_file("");
    drop(folder);
    let error = ClientTls::new(Some(&path)).unwrap_err();
    assert!(error.to_string().contains("roots.pem"), "{error}");
}
