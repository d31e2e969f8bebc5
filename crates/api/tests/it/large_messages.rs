//! Large messages in requests and answers: correct bytes, bounded memory.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use postroad_api::{Mode, Settings};
use postroad_store::Database;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::service::{MESSAGE, SEND_MESSAGE, SEND_RAW, Service, message_to};

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + at / 251) as u8).collect()
}

async fn send(service: &Service, attached: &[u8]) -> Value {
    let mut send = message_to("a@example.net");
    send["attachments"] = json!([{"name": "a.bin", "data": STANDARD.encode(attached)}]);
    let sent = service.call(SEND_MESSAGE, &send).await;
    sent["data"]["messages"]["a@example.net"]["id"].clone()
}

#[tokio::test]
async fn a_large_message_is_stored_and_returned_unchanged() {
    check_stored_and_returned_unchanged(&Service::start().await).await;
    let database = postroad_testkit::Database::create();
    check_stored_and_returned_unchanged(
        &Service::start_on_database(Database::Postgres(database.url().to_owned())).await,
    )
    .await;
}

async fn check_stored_and_returned_unchanged(service: &Service) {
    let attached = content(3 << 20);
    let id = send(service, &attached).await;
    let all = service.call(MESSAGE, &json!({"id": id, "_expansions": true})).await["data"].take();
    assert_eq!(STANDARD.decode(all["attachments"][0]["data"].as_str().unwrap()).unwrap(), attached);
    assert_eq!(all["plain_body"], "Hello there");
    let raw = STANDARD.decode(all["raw_message"].as_str().unwrap()).unwrap();
    assert!(raw.starts_with(b"Received: by "));
    assert_eq!(all["details"]["size"], json!(raw.len().to_string()));

    // Send the returned bytes again, and request only the raw bytes.
    let again = json!({
        "mail_from": "shop@example.test", "rcpt_to": ["b@example.net"], "data": all["raw_message"],
    });
    let sent = service.call(SEND_RAW, &again).await;
    let id = &sent["data"]["messages"]["b@example.net"]["id"];
    let found = service.call(MESSAGE, &json!({"id": id, "_expansions": ["raw_message"]})).await;
    let stored = STANDARD.decode(found["data"]["raw_message"].as_str().unwrap()).unwrap();
    // Headers at the top may differ; the second half is content of the attachment.
    assert!(stored.ends_with(&raw[raw.len() / 2..]));
}

/// Requests everything and reads only the beginning of the answer.
async fn begin_to_read(service: &Service, id: &Value) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    // Otherwise the kernel buffers much of the answer.
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let mut stream = socket.connect(service.address).await.unwrap();
    let body = json!({"id": id, "_expansions": true}).to_string();
    let mut request = service.head(MESSAGE, &format!("Content-Length: {}\r\n", body.len()));
    request.extend_from_slice(body.as_bytes());
    stream.write_all(&request).await.unwrap();
    let mut begin = [0; 15];
    stream.read_exact(&mut begin).await.unwrap();
    assert_eq!(begin.as_slice(), b"HTTP/1.1 200 OK");
    stream
}

#[tokio::test]
async fn large_answers_share_memory_that_is_freed_when_a_reader_disconnects() {
    // 24 MiB of the 64 are for answers, half of that for one server. One answer of this test takes that whole half.
    let mut settings = Settings { in_flight_bytes_max: 64 << 20, ..Settings::default() };
    settings.times.memory_wait = Duration::from_secs(1);
    let service = Service::start_with(settings, Mode::Serve).await;
    let id = send(&service, &content(9 << 20)).await;
    let slow = begin_to_read(&service, &id).await;

    let everything = json!({"id": id, "_expansions": true});
    let refused = service.client.post_json(MESSAGE, Some(&service.key), &everything).await.unwrap();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    assert_eq!(refused.json()["data"]["code"], "ServiceUnavailable");
    // The slow reader does not delay other calls.
    let small = service.call(MESSAGE, &json!({"id": id, "_expansions": ["details"]})).await;
    assert_eq!(small["status"], "success");
    assert!(send(&service, &content(1 << 20)).await.is_i64());

    drop(slow);
    assert_eq!(service.call(MESSAGE, &everything).await["status"], "success");
}

#[tokio::test]
async fn a_large_answer_that_nobody_reads_is_cut_off() {
    let mut settings = Settings { in_flight_bytes_max: 64 << 20, ..Settings::default() };
    settings.times.body_stall = Duration::from_millis(500);
    let service = Service::start_with(settings, Mode::Serve).await;
    let id = send(&service, &content(9 << 20)).await;
    let mut slow = begin_to_read(&service, &id).await;
    // This call waits for the memory of the first answer, and gets it although the first client is still connected.
    let everything = json!({"id": id, "_expansions": true});
    assert_eq!(service.call(MESSAGE, &everything).await["status"], "success");
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.ok();
    assert!(rest.len() < 20 << 20, "the answer is cut off: {}", rest.len());
}
