//! Large messages: one of 24 MiB is read back byte for byte. A request over the limit is refused before it is read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::RngCore;
use serde_json::json;

use crate::world::{MESSAGE, RAW, SEND, World, both_engines, good, good_but};

const MESSAGE_BYTES_MAX: usize = 25 << 20;
const REQUEST_BYTES_MAX: usize = 40 << 20;

fn raw_of_size(size: usize) -> Vec<u8> {
    let mut message =
        b"From: shop@example.test\r\nTo: a@example.com\r\nSubject: big\r\nMessage-ID: <big@example.test>\r\n\
        Date: Mon, 2 Nov 2026 10:00:00 +0000\r\n\r\n"
            .to_vec();
    // Random letters, 72 to a line, because they compress badly.
    let mut random = vec![0; (size - message.len()) / 74 * 54 + 54];
    rand::rng().fill_bytes(&mut random);
    for line in STANDARD.encode(random).into_bytes().chunks(72) {
        message.extend_from_slice(line);
        message.extend_from_slice(b"\r\n");
    }
    message.truncate(size);
    if message.ends_with(b"\r") {
        *message.last_mut().unwrap() = b'x';
    }
    message
}

both_engines!(
    twenty_four_mebibytes_read_back_byte_for_byte,
    a_message_over_the_limit_is_refused,
    a_request_over_the_limit_is_refused_before_it_is_read
);

async fn twenty_four_mebibytes_read_back_byte_for_byte(world: World) {
    let message = raw_of_size(24 << 20);
    let body = json!({"mail_from": "a@example.test", "rcpt_to": ["a@example.com"], "data": STANDARD.encode(&message)});
    let answer = world.call(RAW, &body).await;
    assert_eq!(answer["status"], "success", "{answer}");
    let id = answer["data"]["messages"]["a@example.com"]["id"].as_i64().unwrap();
    let read = world.call(MESSAGE, &json!({"id": id, "_expansions": ["raw_message", "details"]})).await;
    let bytes = STANDARD.decode(read["data"]["raw_message"].as_str().unwrap()).unwrap();
    assert_eq!(read["data"]["details"]["size"], bytes.len().to_string());
    let received = bytes.strip_suffix(&message[..]).expect("the bytes differ");
    assert!(received.starts_with(b"Received: by ") && received.len() < 200);
}

async fn a_message_over_the_limit_is_refused(world: World) {
    for (size, status) in [(MESSAGE_BYTES_MAX, "success"), (MESSAGE_BYTES_MAX + 1, "parameter-error")] {
        let data = STANDARD.encode(raw_of_size(size));
        let body = json!({"mail_from": "a@example.test", "rcpt_to": ["a@example.com"], "data": data});
        let answer = world.call(RAW, &body).await;
        assert_eq!(answer["status"], status, "{size}");
    }
    let data = STANDARD.encode(vec![0; 20 << 20]);
    let answer = world.call(SEND, &good_but(json!({"attachments": [{"name": "a", "data": data}]}))).await;
    assert_eq!(answer["status"], "parameter-error", "20 MiB are 27 MiB in base64");
}

async fn a_request_over_the_limit_is_refused_before_it_is_read(world: World) {
    let address =
        world.daemon.ready()["url"].as_str().unwrap().trim_start_matches("http://").parse().unwrap();
    let head = format!(
        "POST {SEND} HTTP/1.1\r\nHost: localhost\r\nX-Server-API-Key: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
        world.key,
        REQUEST_BYTES_MAX + 1
    );
    // Only the head is sent: a service that waited for the body would not answer.
    let answer = postroad_testkit::http::raw(address, head.as_bytes()).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("\"code\":\"RequestTooLarge\""), "{answer}");
    // The whole body sent in one go gets the same answer, not a reset.
    let reply = world.request("POST", SEND, &[], vec![b' '; REQUEST_BYTES_MAX + 1]).await;
    assert_eq!(reply.status, 413);
    let answer = crate::world::checked_envelope(&reply);
    assert_eq!(answer["data"]["code"], "RequestTooLarge");
    assert_eq!(world.call(SEND, &good()).await["status"], "success");
}
