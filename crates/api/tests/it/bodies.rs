//! Bodies that are too large, too slow, or not read: the answer arrives nevertheless.

use std::time::Duration;

use hyper::Method;
use postroad_api::{Mode, Settings};
use postroad_testkit::http::{raw, raw_to_end};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::service::{MESSAGE, SEND_MESSAGE, Service, message_to};

const REQUEST_BYTES_MAX: usize = 100_000;

async fn start_with_small_limit() -> Service {
    Service::start_with(Settings { request_bytes_max: REQUEST_BYTES_MAX, ..Settings::default() }, Mode::Serve)
        .await
}

/// Writes the whole request before reading anything, as simple clients do.
async fn write_then_read(service: &Service, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    stream.write_all(bytes).await.expect("the service reads all of it");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the answer is not cut off");
    answer
}

fn is_413(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 413 ")
        && answer.contains("\"code\":\"RequestTooLarge\"")
        && answer.contains("\"message\":\"The request body is larger than 100000 bytes\"")
        && answer.to_ascii_lowercase().contains("\r\nconnection: close\r\n")
        && answer.to_ascii_lowercase().contains("\r\nx-request-id: ")
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_read_and_one_byte_more_is_refused() {
    let service = start_with_small_limit().await;
    let body = |bytes: usize| format!(r#"{{"id": 7}}{}"#, " ".repeat(bytes - 9));
    let fits = service.request(Method::POST, MESSAGE, &[], &body(REQUEST_BYTES_MAX)).await;
    assert_eq!((fits.status, &fits.json()["data"]["code"]), (200, &"MessageNotFound".into()));
    let over = service.request(Method::POST, MESSAGE, &[], &body(REQUEST_BYTES_MAX + 1)).await;
    assert_eq!(over.status, 413);
}

#[tokio::test]
async fn a_too_large_announced_length_is_refused_before_the_body_arrives() {
    let service = start_with_small_limit().await;
    let answer =
        raw(service.address, &service.head(SEND_MESSAGE, "Content-Length: 999999999999\r\n")).await.unwrap();
    assert!(is_413(&String::from_utf8(answer).unwrap()));
    let waiting = "Content-Length: 999999\r\nExpect: 100-continue\r\n";
    let answer = raw_to_end(service.address, &service.head(SEND_MESSAGE, waiting)).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(is_413(&answer), "no 100 Continue comes first: {answer}");
}

#[tokio::test]
async fn a_client_that_writes_a_too_large_body_to_its_end_still_gets_the_413() {
    let service = start_with_small_limit().await;
    let mut bytes = service.head(SEND_MESSAGE, "Content-Length: 20000000\r\n");
    bytes.resize(bytes.len() + 20_000_000, b'x');
    let answer = write_then_read(&service, &bytes).await;
    assert!(is_413(&answer), "{answer}");
}

#[tokio::test]
async fn a_chunked_body_is_refused_when_it_passes_the_limit() {
    let service = start_with_small_limit().await;
    let chunk = [b"2710\r\n".as_slice(), &[b'x'; 10_000], b"\r\n"].concat();
    let mut bytes = service.head(SEND_MESSAGE, "Transfer-Encoding: chunked\r\n");
    for _ in 0..2_000 {
        bytes.extend_from_slice(&chunk);
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    let answer = write_then_read(&service, &bytes).await;
    assert!(is_413(&answer), "{answer}");

    // A body whose last chunk never comes is refused too.
    let mut unfinished = service.head(SEND_MESSAGE, "Transfer-Encoding: chunked\r\n");
    (0..11).for_each(|_| unfinished.extend_from_slice(&chunk));
    assert!(is_413(&String::from_utf8(raw(service.address, &unfinished).await.unwrap()).unwrap()));
}

#[tokio::test]
async fn a_chunked_body_within_the_limit_is_accepted() {
    let service = start_with_small_limit().await;
    let mut bytes = service.head(MESSAGE, "Transfer-Encoding: chunked\r\n");
    bytes.extend_from_slice(b"4\r\n{\"id\r\n5\r\n\": 7}\r\n0\r\n\r\n");
    let answer = String::from_utf8(raw(service.address, &bytes).await.unwrap()).unwrap();
    assert!(answer.contains("MessageNotFound"), "{answer}");
}

#[tokio::test]
async fn a_bad_key_is_answered_though_the_body_is_large() {
    let service = Service::start().await;
    let mut bytes =
        b"POST /api/v1/send/message HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n".to_vec();
    bytes.resize(bytes.len() + 20_000_000, b'x');
    let answer = write_then_read(&service, &bytes).await;
    assert!(answer.contains("\"code\":\"InvalidServerAPIKey\""), "{answer}");
}

#[tokio::test]
async fn a_small_body_that_the_service_does_not_read_leaves_the_connection_open() {
    let service = Service::start().await;
    let unread = "POST /api/v1/send/message HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde";
    let last = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answers = raw_to_end(service.address, format!("{unread}{unread}{last}").as_bytes()).await.unwrap();
    let answers = String::from_utf8(answers).unwrap();
    assert_eq!(answers.matches("InvalidServerAPIKey").count(), 2, "{answers}");
    assert!(answers.ends_with(r#"{"status":"ok"}"#), "{answers}");
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let short = Duration::from_millis(50);
    let (mut whole, mut stall) = (Settings::default(), Settings::default());
    whole.times.body = short;
    stall.times.body_stall = short;
    for (settings, message) in
        [(whole, "The request body did not arrive"), (stall, "Nothing more of the request body arrived")]
    {
        let service = Service::start_with(settings, Mode::Serve).await;
        let mut bytes = service.head(MESSAGE, "Content-Length: 100000\r\n");
        bytes.extend_from_slice(b"{\"id\"");
        let answer = String::from_utf8(raw(service.address, &bytes).await.unwrap()).unwrap();
        assert!(answer.contains(message), "{answer}");
    }
}

#[tokio::test]
async fn requests_that_announce_large_bodies_and_send_nothing_delay_no_other_call() {
    let service = Service::start().await;
    let head = service.head(SEND_MESSAGE, "Content-Length: 41943040\r\nExpect: 100-continue\r\n");
    let calls = async {
        let mut idle = Vec::new();
        for _ in 0..30 {
            let mut stream = TcpStream::connect(service.address).await.unwrap();
            stream.write_all(&head).await.unwrap();
            // The 100 Continue shows that the service now waits for the body.
            let mut interim = [0; 25];
            stream.read_exact(&mut interim).await.unwrap();
            assert_eq!(interim.as_slice(), b"HTTP/1.1 100 Continue\r\n\r\n");
            idle.push(stream);
        }
        let sent = service.call(SEND_MESSAGE, &message_to("a@example.net")).await;
        assert_eq!(sent["status"], "success", "{sent}");
    };
    timeout(Settings::default().times.memory_wait / 2, calls).await.expect("nobody waits for memory");
}
