//! A server session on a real socket, with Postroad's own client session at the other end.

use std::net::SocketAddr;
use std::sync::Arc;

use postroad_smtp::server::{AuthPolicy, Event, ServerConfig, ServerSession, StandardReply};
use postroad_smtp::{Credentials, TlsMode, Verdict};
use postroad_testkit::TestCertificate;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::dialogue::submission_config;
use crate::dialogue::{config as client_config, message};
use crate::driver::Driver;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Serves one connection; the task returns the received messages.
async fn serve_one(config: ServerConfig, tls: TlsAcceptor) -> (SocketAddr, JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream: Box<dyn Stream> = Box::new(stream);
        let mut session = ServerSession::new(Arc::new(config));
        let (mut message, mut messages) = (Vec::new(), Vec::new());
        let mut buffer = vec![0; 4_096];
        loop {
            let (mut is_closed, mut must_start_tls) = (false, false);
            while let Some(event) = session.next_event() {
                match event {
                    Event::StartTls => must_start_tls = true,
                    Event::Auth(login) if login.password != "secret" => {
                        session.reply(StandardReply::BadCredentials);
                    }
                    Event::Data(bytes) => message.extend_from_slice(&bytes),
                    Event::EndOfData => {
                        messages.push(std::mem::take(&mut message));
                        session.accept();
                    }
                    Event::Closed(_) => is_closed = true,
                    _ => session.accept(),
                }
            }
            stream.write_all(&session.take_output()).await.unwrap();
            stream.flush().await.unwrap();
            if must_start_tls {
                stream = Box::new(tls.accept(stream).await.unwrap());
                session.tls_established();
            }
            if is_closed {
                return messages;
            }
            match stream.read(&mut buffer).await.unwrap() {
                0 => return messages,
                count => session.feed(&buffer[..count]),
            }
        }
    });
    (address, serving)
}

fn acceptor(certificate: &TestCertificate) -> TlsAcceptor {
    let chain = CertificateDer::from_pem_slice(certificate.certificate_pem.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(certificate.key_pem.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn our_client_and_our_server_understand_each_other() {
    let certificate = TestCertificate::for_localhost();
    let text = "Subject: hi||.dot|..|Grüße|";
    for (pipelining, chunking) in [(false, false), (true, false), (false, true), (true, true)] {
        let (address, serving) = serve_one(submission_config(), acceptor(&certificate)).await;
        let credentials = Credentials {
            username: "key".to_owned(),
            password: "secret".to_owned(),
            allow_without_tls: false,
        };
        let mut config = client_config();
        (config.pipelining, config.chunking) = (pipelining, chunking);
        (config.tls, config.credentials) = (TlsMode::Required, Some(credentials));
        let mut driver = Driver::new(address, config);
        driver.trust = Some((certificate.ca_pem.clone(), "localhost"));
        let large = "x".repeat(60) + "|";
        let messages =
            vec![message("bob@example.net", text), message("jürgen@example.net", &large.repeat(5_000))];
        let report = driver.deliver(messages).await;
        let accepted = |verdict: &Verdict| matches!(verdict, Verdict::Accepted(_));
        assert!(report.outcomes.iter().all(|outcome| accepted(&outcome.verdict)), "{}", report.transcript);
        assert!(report.is_encrypted);
        let received = serving.await.unwrap();
        assert_eq!(received[0], text.replace('|', "\r\n").into_bytes());
        assert!(received[1] == large.repeat(5_000).replace('|', "\r\n").into_bytes());
    }
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    let certificate = TestCertificate::for_localhost();
    let server = ServerConfig {
        auth: AuthPolicy::Anywhere,
        starttls: false,
        tls_required: false,
        ..submission_config()
    };
    let (address, serving) = serve_one(server, acceptor(&certificate)).await;
    let mut config = client_config();
    config.credentials = Some(Credentials {
        username: "key".to_owned(),
        password: "guess".to_owned(),
        allow_without_tls: true,
    });
    let report = Driver::new(address, config).deliver(vec![message("bob@example.net", "hi|")]).await;
    assert!(report.transcript.contains("S: 535 5.7.8 "), "{}", report.transcript);
    assert!(serving.await.unwrap().is_empty());
}
