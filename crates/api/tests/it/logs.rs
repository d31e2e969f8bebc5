//! Request log: one line per request, without customer data.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};

use hyper::Method;
use tracing_subscriber::fmt::MakeWriter;

use crate::service::{MESSAGE, SEND_MESSAGE, Service, message_to};

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogBuffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

// Everything runs on this one thread, so that its subscriber sees all lines.
#[tokio::test]
async fn every_request_is_one_line_without_keys_addresses_or_content() {
    let lines = LogBuffer::default();
    // With one dispatcher, the first thread that reaches a log line decides for all threads whether that line is
    // enabled, and threads of other tests have no subscriber. With two dispatchers, tracing asks both.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let subscriber =
        tracing_subscriber::fmt().json().with_max_level(tracing::Level::INFO).with_writer(lines.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let service = Service::start().await;
    lines.0.lock().unwrap().clear();

    let text = message_to("secret-person@example.net").to_string();
    service.request(Method::POST, SEND_MESSAGE, &[("x-request-id", "one")], &text).await;
    service
        .request(Method::GET, &format!("{MESSAGE}?params=%7B%22id%22%3A7%7D"), &[("x-request-id", "two")], "")
        .await;
    // Clients may reuse an id; the generated id tells the lines apart.
    let bad = [("x-server-api-key", "bad-key"), ("x-request-id", "two")];
    service.client.request(Method::POST, SEND_MESSAGE, &bad, text.into()).await.unwrap();

    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let entries: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut own_ids = HashSet::new();
    let logged: Vec<String> = entries
        .iter()
        .map(|entry| &entry["fields"])
        .map(|fields| {
            assert!(fields["duration_ms"].is_f64(), "{fields}");
            let own_id = fields["request.own_id"].as_str().unwrap_or_default().to_owned();
            assert!(own_id.len() == 36 && own_ids.insert(own_id), "{fields}");
            let has_caller = fields["server.id"].is_i64() && fields["credential.id"].is_i64();
            let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
            let status = &fields["status"];
            format!(
                "{} {} {} {status} {} {has_caller}",
                text("request.id"),
                text("method"),
                text("path"),
                text("code")
            )
        })
        .collect();
    assert_eq!(
        logged,
        [
            format!("one POST {SEND_MESSAGE} 200 success true"),
            format!("two GET {MESSAGE} 200 MessageNotFound true"),
            format!("two POST {SEND_MESSAGE} 200 InvalidServerAPIKey false"),
        ]
    );
    for secret in [service.key.as_str(), "bad-key", "secret-person", "Hello", "shop@", "params"] {
        assert!(!log.contains(secret), "{secret} is in the log: {log}");
    }
}
