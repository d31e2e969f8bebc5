//! Listeners: redirects, TLS, HTTP/2, idle connections, stopping.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Method;
use hyper_util::rt::{TokioExecutor, TokioIo};
use postroad_api::{Api, HttpServer, Mode, Settings};
use postroad_net::ReloadingCertificate;
use postroad_testkit::{Client, TestCertificate, eventually};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::service::{MESSAGE, SEND_MESSAGE, Service, message_to, open_app};

#[tokio::test]
async fn a_plain_listener_redirects_to_https() {
    let service = Service::start_with(Settings::default(), Mode::RedirectToHttps { port: 8443 }).await;
    let path = "/api/v1/send/message?a=b";
    let reply = service.request(Method::POST, path, &[("host", "mail.example.com:8080")], "{}").await;
    assert_eq!(reply.status, 308);
    assert_eq!(reply.header("location"), Some("https://mail.example.com:8443/api/v1/send/message?a=b"));
    assert!(reply.header("x-request-id").is_some());
    assert_eq!(service.client.get("/health").await.unwrap().json(), json!({"status": "ok"}));
    let bad = service.request(Method::POST, path, &[("host", "a@b")], "{}").await;
    assert_eq!((bad.status, bad.header("location")), (400, None));
}

#[tokio::test]
async fn a_request_over_tls_to_a_trusted_proxy_is_served_and_recorded_as_tls() {
    let settings = Settings { trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()], ..Settings::default() };
    let service = Service::start_with(settings, Mode::RedirectToHttps { port: 443 }).await;
    let https = [("x-forwarded-proto", "https"), ("x-forwarded-for", "192.0.2.7")];
    let text = message_to("a@example.net").to_string();
    let sent = service.request(Method::POST, SEND_MESSAGE, &https, &text).await.json();
    let id = &sent["data"]["messages"]["a@example.net"]["id"];
    let lookup = json!({"id": id, "_expansions": ["details"]}).to_string();
    let found = service.request(Method::POST, MESSAGE, &https, &lookup).await.json();
    assert_eq!(found["data"]["details"]["received_with_ssl"], true, "{found}");
}

#[tokio::test]
async fn https_is_served_and_a_new_certificate_takes_over() {
    let folder = TempDir::new().unwrap();
    let install = |pair: &TestCertificate| {
        std::fs::write(folder.path().join("cert.pem"), &pair.certificate_pem).unwrap();
        std::fs::write(folder.path().join("key.pem"), &pair.key_pem).unwrap();
    };
    let (first, second) = (TestCertificate::for_localhost(), TestCertificate::for_localhost());
    install(&first);
    let certificate =
        ReloadingCertificate::load(&folder.path().join("cert.pem"), &folder.path().join("key.pem")).unwrap();
    let (app, _) = open_app(&folder).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let api = Api::new(app, Settings::default());
    let server = HttpServer::start(&api, listener, Some(certificate.https_config()), Mode::Serve);

    assert_eq!(Client::https(&url, &first.ca_pem).get("/ready").await.unwrap().status, 200);
    install(&second);
    certificate.reload().unwrap();
    assert_eq!(Client::https(&url, &second.ca_pem).get("/ready").await.unwrap().status, 200);
    assert!(Client::https(&url, &first.ca_pem).get("/ready").await.is_err());
    server.stop().await;
}

#[tokio::test]
async fn http2_is_served() {
    let service = Service::start().await;
    let stream = TcpStream::connect(service.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection_task = tokio::spawn(connection);
    let post = |key: Option<&str>, body: &str| {
        let mut request = hyper::Request::post(format!("http://test{MESSAGE}"));
        if let Some(key) = key {
            request = request.header("x-server-api-key", key);
        }
        request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()
    };
    for (key, body, code) in [
        (Some(service.key.as_str()), r#"{"id": 7}"#.to_owned(), "MessageNotFound"),
        (None, "x".repeat(1_000_000), "InvalidServerAPIKey"),
        (Some(service.key.as_str()), r#"{"id": 7}"#.to_owned(), "MessageNotFound"),
    ] {
        let answer = sender.send_request(post(key, &body)).await.unwrap();
        assert_eq!(answer.version(), hyper::Version::HTTP_2);
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&text).contains(code), "{text:?}");
    }
    drop(sender);
    connection_task.await.unwrap().unwrap();
}

async fn bytes_until_closed(address: SocketAddr, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    let mut answer = String::new();
    let reading = stream.read_to_string(&mut answer);
    tokio::time::timeout(Duration::from_secs(10), reading).await.expect("the service closes it").unwrap();
    answer
}

#[tokio::test]
async fn silent_and_idle_connections_are_closed() {
    let mut settings = Settings::default();
    settings.times.request_head = Duration::from_millis(50);
    settings.times.idle = Duration::from_millis(50);
    let service = Service::start_with(settings, Mode::Serve).await;
    assert_eq!(bytes_until_closed(service.address, b"").await, "");
    assert_eq!(bytes_until_closed(service.address, b"PO").await, "");
    // hyper may send a 408.
    let slow = bytes_until_closed(service.address, b"POST / HTTP/1.1\r\nHost:").await;
    assert!(slow.is_empty() || slow.starts_with("HTTP/1.1 408 "), "{slow}");
    let once = bytes_until_closed(service.address, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(once.ends_with(r#"{"status":"ok"}"#), "{once}");
}

#[tokio::test]
async fn a_request_in_flight_is_finished_when_the_service_stops() {
    let service = Service::start().await;
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    let head = service.head(MESSAGE, "Content-Length: 9\r\nExpect: 100-continue\r\n");
    stream.write_all(&head).await.unwrap();
    // The service asks for the body: the request is in flight.
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    // An idle connection must not delay the stop.
    let _idle = TcpStream::connect(service.address).await.unwrap();

    let stopping = tokio::spawn(service.server.stop());
    // Once connecting is refused, the service has begun to stop.
    eventually(async || match TcpStream::connect(service.address).await {
        Ok(_) => Err("the service still accepts connections"),
        Err(_) => Ok(()),
    })
    .await;
    stream.write_all(br#"{"id": 7}"#).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("MessageNotFound"), "{answer}");
    let stopped = tokio::time::timeout(Duration::from_secs(5), stopping).await;
    stopped.expect("the idle connection is closed, not waited for").unwrap();
}

#[tokio::test]
async fn a_request_that_does_not_finish_is_cut_off_when_the_service_stops() {
    let mut settings = Settings::default();
    settings.times.stop = Duration::from_millis(50);
    let service = Service::start_with(settings, Mode::Serve).await;
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    let head = service.head(MESSAGE, "Content-Length: 9\r\nExpect: 100-continue\r\n");
    stream.write_all(&head).await.unwrap();
    stream.read_exact(&mut [0; 25]).await.unwrap();
    service.server.stop().await;
    let mut rest = Vec::new();
    // The connection is closed or reset without an answer.
    drop(stream.read_to_end(&mut rest).await);
    assert_eq!(rest, b"");
}
