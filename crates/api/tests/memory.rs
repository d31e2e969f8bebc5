//! The rule of `Limits`: an HTTP request takes at most three times its own bytes of memory, plus 1 MB, from the first
//! byte read to the answer. A batch takes four times its bytes, and five times on PostgreSQL, whose driver copies what
//! it sends.
//!
//! A counting allocator measures the whole process. Therefore this is a separate test binary with a single test.

#![cfg(test)]

#[expect(dead_code, reason = "the other tests use all of it")]
#[path = "it/service.rs"]
mod service;

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use peak_alloc::PeakAlloc;
use postroad_store::Database;
use postroad_testkit::{random_bytes, random_text};
use serde_json::{Value, json};
use service::{SEND_MESSAGE, SEND_RAW, Service, message_to};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes of each request: large enough that the fixed 1 MB of the rule does not hide an excess.
const REQUEST_BYTES: usize = 6 << 20;
const FIXED_BYTES: usize = 1 << 20;
const SEND_BATCH: &str = "/api/v1/send/batch";
const SUPPRESSIONS_ADD: &str = "/api/v1/suppressions/add";

#[tokio::test]
async fn an_http_request_takes_at_most_three_times_its_bytes_plus_a_megabyte() {
    let mut test = Test::start(Service::start().await).await;
    test.bodies().await;
    test.attachments().await;
    test.raw_messages().await;
    test.suppressions().await;
    test.batches(4).await;
    assert!(test.excesses.is_empty(), "{:#?}", test.excesses);

    let database = postroad_testkit::Database::create();
    let on_postgres = Service::start_on_database(Database::Postgres(database.url().to_owned())).await;
    let mut test = Test::start(on_postgres).await;
    test.send("without escapes", "plain_body", &random_text(REQUEST_BYTES, " ")).await;
    test.suppressions().await;
    test.batches(5).await;
    assert!(test.excesses.is_empty(), "on PostgreSQL: {:#?}", test.excesses);
}

/// Makes calls, and collects those that take too much memory.
struct Test {
    service: Service,
    excesses: Vec<String>,
}

impl Test {
    async fn start(service: Service) -> Self {
        let mut test = Self { service, excesses: Vec::new() };
        // The first sends fill small caches that stay.
        for text in ["hello", &random_text(REQUEST_BYTES / 10, "\n"), "hello"] {
            test.send("warm-up", "plain_body", text).await;
        }
        test.excesses.clear();
        test
    }

    async fn bodies(&mut self) {
        for (name, text) in [
            ("without escapes", random_text(REQUEST_BYTES, " ")),
            ("with escapes", random_text(REQUEST_BYTES, "\n")),
            ("of controls", random_text(REQUEST_BYTES, "\u{7f}")),
        ] {
            self.send(name, "plain_body", &text).await;
            self.send(name, "html_body", &text).await;
            let half = &text[..text.floor_char_boundary(text.len() / 2)];
            let both = json!({"plain_body": half, "html_body": half});
            self.call(&format!("both bodies {name}"), SEND_MESSAGE, &send_with(&both).to_string()).await;
            let unequal = json!({"plain_body": "short\n", "html_body": text, "idempotency_key": name});
            self.call(&format!("with a key {name}"), SEND_MESSAGE, &send_with(&unequal).to_string()).await;
        }
        let request = send_with(&json!({"html_body": random_text(REQUEST_BYTES / 2, " ")})).to_string();
        self.call("all in ASCII", SEND_MESSAGE, &in_ascii(&request)).await;
    }

    async fn attachments(&mut self) {
        for (name, piece) in [("", "/"), (" with escapes", "\\/")] {
            let one = BASE64_STANDARD.encode(random_bytes(REQUEST_BYTES / 4 * 3));
            let request = send_with(&json!({"attachments": [{"name": "a.bin", "data": one}]})).to_string();
            self.call(&format!("an attachment{name}"), SEND_MESSAGE, &request.replace('/', piece)).await;
            let part = BASE64_STANDARD.encode(random_bytes(REQUEST_BYTES / 40 * 3));
            let parts: Vec<Value> = (0..10).map(|_| json!({"name": "a.bin", "data": part})).collect();
            let request = send_with(&json!({"attachments": parts})).to_string();
            self.call(&format!("attachments{name}"), SEND_MESSAGE, &request.replace('/', piece)).await;
        }
    }

    async fn raw_messages(&mut self) {
        let head = b"From: shop@example.test\r\nContent-Transfer-Encoding: 8bit\r\n\r\n";
        for (name, end) in [("with CRLF", &b"\r\n"[..]), ("with LF", b"\n")] {
            let mut message = head.to_vec();
            for line in random_bytes(REQUEST_BYTES / 4 * 3).chunks_mut(100) {
                line.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b'x');
                message.extend_from_slice(line);
                message.extend_from_slice(end);
            }
            let raw = json!({"mail_from": "shop@example.test", "rcpt_to": ["a@example.net"], "data": BASE64_STANDARD.encode(message)});
            for piece in ["/", "\\/"] {
                let request = raw.to_string().replace('/', piece);
                self.call(&format!("send/raw {name} {piece:?}"), SEND_RAW, &request).await;
            }
        }
    }

    async fn suppressions(&mut self) {
        let unknown: Vec<String> = (0..29).map(|key| format!("\"k{key}\":1")).collect();
        let items = |item: &dyn Fn(usize) -> String| {
            let items: Vec<String> = (0..1_000).map(|at| format!("{{{}}}", item(at))).collect();
            format!("{{\"items\":[{}]}}", items.join(","))
        };
        let known = |at: usize| format!("\"address\":\"a{at}@example.net\"");
        let request = items(&|at| format!("{},{}", known(at), unknown.join(",")));
        self.call("1,000 items with 30 keys", SUPPRESSIONS_ADD, &request).await;
        let request = items(&|at| format!("{},\"details\":\"{}\"", known(at), "x".repeat(5_000)));
        self.call("1,000 items with long details", SUPPRESSIONS_ADD, &request).await;
        let request = items(&|at| format!("{},\"odd\":[{}1]", known(at), "1,".repeat(1_000)));
        self.call("1,000 items with lists", SUPPRESSIONS_ADD, &request).await;
    }

    /// A batch may take `times` times its own bytes.
    async fn batches(&mut self, times: usize) {
        let text = random_text(REQUEST_BYTES / 60, " ");
        let data = BASE64_STANDARD.encode(random_bytes(REQUEST_BYTES / 80));
        let attached = json!([{"name": "a.bin", "data": data}]);
        for (name, message, count) in [
            ("of texts", send_with(&json!({"plain_body": text})), 60),
            ("of attachments", send_with(&json!({"attachments": attached})), 60),
            ("of short messages", message_to("a@example.net"), 500),
        ] {
            let request = json!({"messages": vec![message; count]}).to_string();
            // Beside the request, all messages are kept at once, each with its compressed form. The call reserves
            // memory for them.
            let fixed_bytes = FIXED_BYTES + count * 8_000 + (times - 3) * request.len();
            self.call_within(&format!("a batch {name}"), SEND_BATCH, &request, fixed_bytes).await;
        }
    }

    async fn send(&mut self, name: &str, field: &str, text: &str) {
        self.call(&format!("{field} {name}"), SEND_MESSAGE, &send_with(&json!({field: text})).to_string())
            .await;
    }

    async fn call(&mut self, name: &str, path: &str, request: &str) {
        self.call_within(name, path, request, FIXED_BYTES).await;
    }

    /// Makes a call and measures its memory. Every call must succeed: a request that is refused early shows nothing.
    async fn call_within(&mut self, name: &str, path: &str, request: &str, fixed_bytes: usize) {
        let head = format!("Content-Length: {}\r\nConnection: close\r\n", request.len());
        let head = self.service.head(path, &head);
        let mut answer = Vec::with_capacity(FIXED_BYTES);
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let mut stream = TcpStream::connect(self.service.address).await.unwrap();
        stream.write_all(&head).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.read_to_end(&mut answer).await.unwrap();
        let taken = ALLOCATOR.peak_usage().saturating_sub(before);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.contains("\"status\":\"success\""), "{name}: {}", &answer[..answer.len().min(500)]);
        if taken > 3 * request.len() + fixed_bytes {
            self.excesses.push(format!("{name}: {taken} bytes for a request of {}", request.len()));
        }
    }
}

/// Request of a send with these fields.
fn send_with(fields: &Value) -> Value {
    let mut send = message_to("a@example.net");
    send.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    send
}

/// The same JSON with escapes for all non-ASCII characters, as many programs write it.
fn in_ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            let _ = write!(text, "\\u{:04x}", c as u32);
        }
    }
    text
}
