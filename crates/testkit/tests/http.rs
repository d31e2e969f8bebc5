//! The HTTP client against a small server of canned answers, plain and over TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use postroad_testkit::http::{raw, raw_to_end};
use postroad_testkit::{Client, RequestError, TestCertificate};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 17\r\nx-seen: yes\r\n\r\n{\"status\":\"fine\"}";

/// Gives every request the same answer; closes the connection after `requests_each` of them.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    requests_each: usize,
) -> Result<(), std::io::Error> {
    let mut seen = Vec::new();
    for _ in 0..requests_each {
        while !seen.ends_with(b"\r\n\r\n") && !seen.ends_with(b"}") {
            if stream.read_buf(&mut seen).await? == 0 {
                return Ok(());
            }
        }
        seen.clear();
        stream.write_all(ANSWER).await?;
    }
    stream.shutdown().await
}

async fn start(requests_each: usize, tls: Option<TlsAcceptor>) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("the loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let tls = tls.clone();
            tokio::spawn(async move {
                match tls {
                    None => serve(stream, requests_each).await,
                    Some(tls) => serve(tls.accept(stream).await?, requests_each).await,
                }
            });
        }
    });
    (address, connections)
}

#[tokio::test]
async fn connections_are_kept_and_reused() {
    let (address, connections) = start(usize::MAX, None).await;
    let client = Client::new(&format!("http://{address}"));
    for _ in 0..5 {
        let reply = client.post_json("/api", Some("key"), &json!({"a": 1})).await.unwrap();
        assert_eq!((reply.status, reply.json()), (200, json!({"status": "fine"})));
        assert_eq!(reply.header("X-Seen"), Some("yes"));
    }
    assert!(connections.load(Ordering::SeqCst) < 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_run_at_once_on_connections_that_the_server_closes() {
    let (address, _) = start(3, None).await;
    let client = Client::new(&format!("http://{address}"));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let client = client.clone();
        tasks.spawn(async move { client.get("/").await });
    }
    while let Some(done) = tasks.join_next().await {
        assert_eq!(done.unwrap().unwrap().status, 200);
    }
}

#[tokio::test]
async fn a_silent_server_and_a_closed_port_are_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap()));
    let client = client.with_timeout(Duration::from_millis(20));
    assert!(matches!(client.get("/").await, Err(RequestError::Late(_))));
    drop(listener);
    assert!(matches!(client.get("/").await, Err(RequestError::Connect(_))));
}

#[tokio::test]
async fn raw_returns_the_bytes_of_the_answer() {
    let (address, _) = start(1, None).await;
    assert_eq!(raw(address, b"NONSENSE\r\n\r\n").await.unwrap(), ANSWER);
    assert_eq!(raw_to_end(address, b"NONSENSE\r\n\r\n").await.unwrap(), ANSWER);
}

#[tokio::test]
async fn https_trusts_only_the_given_authority() {
    let certificate = TestCertificate::for_localhost();
    let chain = vec![CertificateDer::from_pem_slice(certificate.certificate_pem.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(certificate.key_pem.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let (address, _) = start(1, Some(TlsAcceptor::from(Arc::new(config)))).await;

    let by_address = Client::https(&format!("https://{address}"), &certificate.ca_pem);
    assert_eq!(by_address.get("/").await.unwrap().status, 200);
    let by_name = Client::https(&format!("https://localhost:{}", address.port()), &certificate.ca_pem);
    assert_eq!(by_name.get("/").await.unwrap().status, 200);
    let stranger = TestCertificate::for_localhost();
    let distrusting = Client::https(&format!("https://{address}"), &stranger.ca_pem);
    assert!(matches!(distrusting.get("/").await, Err(RequestError::Connect(_))));
}
