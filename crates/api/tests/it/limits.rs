//! Limits for one caller: problems in an answer, streams, connections, slow headers.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Method;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use postroad_api::{Mode, Settings};
use postroad_testkit::eventually_within;
use postroad_testkit::http::raw;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::service::{MESSAGE, SEND_MESSAGE, SEND_RAW, Service, message_to};

const WEBHOOKS_CREATE: &str = "/api/v1/webhooks/create";

#[tokio::test]
async fn an_error_answer_lists_a_hundred_problems_and_says_how_many_more() {
    let service = Service::start().await;
    let recipients: Vec<String> = (0..1_000).map(|n| format!("nobody{n}")).collect();
    let raw =
        json!({"mail_from": "shop@example.test", "rcpt_to": recipients, "data": "RnJvbTogYUB4DQoNCg=="});
    let wrong_types =
        json!({"mail_from": "shop@example.test", "rcpt_to": vec![1; 1_000], "data": "RnJvbTogYUB4"});
    for request in [raw, wrong_types] {
        let refused = service.call(SEND_RAW, &request).await;
        let errors = refused["data"]["errors"].as_array().unwrap();
        assert_eq!((errors.len(), &errors[100]), (101, &json!({"pointer": "", "message": "and 900 more"})));
        assert_eq!(errors[99]["pointer"], "/rcpt_to/99");
        assert_eq!(refused["data"]["message"], errors[0]["message"]);
    }
}

#[tokio::test]
async fn a_thousand_items_with_unknown_keys_are_accepted_with_twenty_warnings() {
    let service = Service::start().await;
    let item = |at: usize| {
        let unknown = (0..29).map(|key| (format!("k{key}"), json!(1)));
        let known = ("address".to_owned(), json!(format!("a{at}@example.net")));
        Value::Object(unknown.chain([known]).collect())
    };
    let items: Vec<Value> = (0..1_000).map(item).collect();
    let added = service.call("/api/v1/suppressions/add", &json!({ "items": items })).await;
    assert_eq!((&added["data"]["added"], &added["data"]["failed"]), (&json!(1_000), &json!(0)), "{added}");
    let warnings = added["flags"]["warnings"].as_array().unwrap();
    assert_eq!((warnings.len(), &warnings[0]), (21, &json!("Unknown field `items/0/k0` was ignored")));
    assert_eq!(warnings[20], "28980 more unknown names were ignored");
    let removed = service.call("/api/v1/suppressions/remove", &json!({ "items": items })).await;
    assert_eq!(removed["data"]["removed"], 1_000, "{removed}");
    assert_eq!(removed["data"]["results"][999]["address"], "a999@example.net");
}

#[tokio::test]
async fn an_error_answer_to_a_large_request_is_small() {
    let service = Service::start().await;
    let long = "x".repeat(200_000);
    let events: Vec<String> = (0..65_001).map(|n| format!("e{n}")).collect();
    let mut message = message_to("a@example.net");
    message["metadata"] = json!({ &long: 1 });
    message["headers"] = json!({ &long: true, "b": "\u{1}".repeat(200_000) });
    message["template"] = json!({ "alias": long });
    message["ip_pool"] = json!(long);
    let digits = "7".repeat(290);
    let requests = [
        (WEBHOOKS_CREATE, json!({"url": "https://example.com/", "events": events}).to_string()),
        (WEBHOOKS_CREATE, json!({"url": format!("x{long}"), "format": long}).to_string()),
        (SEND_MESSAGE, message.to_string()),
        (MESSAGE, format!(r#"{{"id": {digits}}}"#)),
        ("/api/v1/events/list", json!({"types": vec!["x"; 60_000]}).to_string()),
        ("/api/v1/analytics/summary", json!({"filters": { &long: 1 }, "from": long}).to_string()),
        ("/api/v1/suppressions/get", json!({"address": long}).to_string()),
    ];
    for (path, body) in requests {
        let reply = service.request(Method::POST, path, &[], &body).await;
        assert_ne!(reply.json()["status"], "success", "{path}");
        assert!(reply.body.len() < 20_000, "{path}: {} bytes answer {}", reply.body.len(), body.len());
    }
    let bad_key = "k".repeat(30_000);
    let reply = service.client.post_json(MESSAGE, Some(&bad_key), &json!({})).await.unwrap();
    assert!(reply.body.len() < 4_000, "the echo of a key is bounded");
}

/// Connects a client whose window lets the service send headers but no byte of an answer.
async fn connect_without_window(service: &Service) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(service.address).await.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(0);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn h2_post(service: &Service, key: &str, path: &str, body: &Value) -> hyper::Request<Full<Bytes>> {
    let request =
        hyper::Request::post(format!("http://{}{path}", service.address)).header("x-server-api-key", key);
    request.body(Full::new(Bytes::from(body.to_string()))).unwrap()
}

#[tokio::test]
async fn answers_that_a_client_does_not_read_count_against_its_address() {
    let settings = Settings { requests_per_address_max: 3, ..Settings::default() };
    let service = Service::start_with(settings, Mode::Serve).await;
    let mut sender = connect_without_window(&service).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        // The headers come, the body does not.
        answers
            .push(sender.send_request(h2_post(&service, "none", MESSAGE, &json!({"id": 7}))).await.unwrap());
    }
    let refused = service.client.post_json(MESSAGE, Some(&service.key), &json!({"id": 7})).await.unwrap();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")), "{}", refused.text());
    drop((sender, answers));
    // The service notices the end of the connection after a moment.
    eventually_within(Duration::from_secs(10), async || {
        let reply = service.client.post_json(MESSAGE, Some(&service.key), &json!({"id": 7})).await.unwrap();
        let is_answered = reply.status == 200;
        if is_answered {
            Ok(())
        } else {
            Err(format!("the closed connection keeps permits: {}", reply.text()))
        }
    })
    .await;
}

#[tokio::test]
async fn error_answers_that_nobody_reads_are_counted_and_cut_off() {
    // 1.5 MiB for answers, half of that for one server.
    let mut settings =
        Settings { in_flight_bytes_max: 4 << 20, requests_per_tenant_max: 500, ..Settings::default() };
    settings.times.memory_wait = Duration::from_millis(300);
    settings.times.body_stall = Duration::from_millis(1_500);
    let service = Service::start_with(settings, Mode::Serve).await;
    let recipients: Vec<String> = (0..1_000).map(|n| format!("nobody{n}")).collect();
    let request =
        json!({"mail_from": "shop@example.test", "rcpt_to": recipients, "data": "RnJvbTogYUB4DQoNCg=="});
    let mut senders = Vec::new();
    let mut answers = Vec::new();
    let mut is_full = false;
    for _ in 0..5 {
        let mut sender = connect_without_window(&service).await;
        for _ in 0..99 {
            // A connection that is cut off for its unread answers accepts no further requests.
            let sent = sender.send_request(h2_post(&service, &service.key, SEND_RAW, &request)).await;
            let Ok(answer) = sent else { break };
            is_full = answer.status() == 503;
            answers.push(answer);
            if is_full {
                break;
            }
        }
        senders.push(sender);
        if is_full {
            break;
        }
    }
    assert!(is_full, "the server's share of the memory for answers is a limit for errors too");
    // The answers stay unread: once the stall limit is over, the memory is free again.
    eventually_within(Duration::from_secs(20), async || {
        let reply = service.client.post_json(SEND_RAW, Some(&service.key), &request).await.unwrap();
        let is_answered = reply.status == 200;
        if is_answered { Ok(()) } else { Err(format!("slow readers keep their answers: {}", reply.text())) }
    })
    .await;
}

#[tokio::test]
async fn connections_beyond_the_limit_of_an_address_are_closed() {
    let settings = Settings { connections_per_address_max: 2, ..Settings::default() };
    let service = Service::start_with(settings, Mode::Serve).await;
    let request = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(service.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream.read_exact(&mut [0; 15]).await.unwrap();
        open.push(stream);
    }
    let mut third = TcpStream::connect(service.address).await.unwrap();
    let mut answer = Vec::new();
    // The connection is closed or reset without an answer.
    drop(third.write_all(request).await);
    drop(third.read_to_end(&mut answer).await);
    assert_eq!(answer, b"");
    open.clear();
    eventually_within(Duration::from_secs(10), async || {
        let reply = service.client.get("/health").await;
        reply.map(drop).map_err(|error| format!("closed connections keep their permits: {error}"))
    })
    .await;
}

#[tokio::test]
async fn two_host_headers_are_a_400() {
    let service = Service::start().await;
    for path in [MESSAGE, "/health"] {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\nContent-Length: 0\r\n\r\n"
        );
        let answer = String::from_utf8(raw(service.address, request.as_bytes()).await.unwrap()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("\"code\":\"BadRequest\"") && answer.contains("x-request-id"), "{answer}");
    }
}

#[tokio::test]
async fn dripping_request_headers_end_the_connection_after_the_time_for_all_headers() {
    let mut settings = Settings::default();
    settings.times.request_head = Duration::from_millis(500);
    let service = Service::start_with(settings, Mode::Serve).await;
    // Slow down the second request of the connection: the first one is limited by another timer.
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(br#"{"status":"ok"}"#) {
        answer.push(stream.read_u8().await.unwrap());
    }
    // Idle time between the requests does not count.
    tokio::time::sleep(Duration::from_millis(700)).await;
    stream.write_all(b"GET /health HTTP/1.1\r\n").await.unwrap();
    let begun = Instant::now();
    // Sending a byte now and then does not keep the connection open.
    let dripping = async {
        while stream.write_all(b"X").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), dripping).await.expect("the service closes it");
    // The 500 ms began with the first byte of the headers, shortly before `begun`.
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_stream_that_nobody_reads_lets_the_others_of_its_connection_finish() {
    let mut settings = Settings::default();
    settings.times.body_stall = Duration::from_millis(300);
    let service = Service::start_with(settings, Mode::Serve).await;
    let mut send = message_to("a@example.net");
    send["plain_body"] = json!("x".repeat(4 << 20));
    let sent = service.call(SEND_MESSAGE, &send).await;
    let id = &sent["data"]["messages"]["a@example.net"]["id"];
    let stream = TcpStream::connect(service.address).await.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(64 << 10);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let everything = json!({"id": id, "_expansions": true});
    let unread = sender.send_request(h2_post(&service, &service.key, MESSAGE, &everything)).await.unwrap();
    assert_eq!(unread.status(), 200);
    // This call is answered long after the first answer has stalled.
    let wait = json!({"since_cursor": "latest", "wait_s": 3});
    let begun = Instant::now();
    let answer = sender.send_request(h2_post(&service, &service.key, "/api/v1/events/list", &wait)).await;
    assert_eq!(answer.expect("the other stream finishes").status(), 200);
    assert!(begun.elapsed() > Duration::from_secs(2), "it waited: {:?}", begun.elapsed());
    // Then the connection ends and frees the memory of the unread answer.
    tokio::time::timeout(Duration::from_secs(20), connection)
        .await
        .expect("the connection ends")
        .unwrap()
        .ok();
    drop(unread);
}

#[tokio::test]
async fn a_thousand_suppressions_with_many_keys_are_accepted() {
    let service = Service::start().await;
    let entry = |n: usize| {
        let mut entry = json!({"address": format!("user{n}@example.net")});
        for key in 0..12 {
            entry[format!("note_{key}")] = json!(format!("value {key}"));
        }
        entry
    };
    let list: Vec<Value> = (0..1_000).map(entry).collect();
    let answer = service.call("/api/v1/suppressions/add", &json!({ "items": list })).await;
    assert_eq!((&answer["status"], &answer["data"]["added"]), (&json!("success"), &json!(1_000)), "{answer}");
}
