//! Request bodies of the HTTP API, through a real listener: no body may cause a 5xx.

use std::cell::OnceCell;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use postroad_api::{Api, HttpServer, Mode, Settings};
use postroad_app::App;
use postroad_model::{DomainName, Limits, SystemClock};
use postroad_store::{Database, Role, Store};
use postroad_testkit::Client;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use super::Target;

/// The first byte of an input chooses one of these; the rest is the body.
const PATHS: &[&str] = &[
    "send/message",
    "send/raw",
    "messages/message",
    "messages/deliveries",
    "analytics/summary",
    "analytics/timeseries",
    "analytics/top",
    "analytics/message",
    "webhooks/create",
    "webhooks/get",
    "webhooks/list",
    "webhooks/update",
    "webhooks/attempts",
    "webhooks/replay",
    "suppressions/list",
    "suppressions/get",
    "suppressions/add",
    "suppressions/remove",
    "suppressions/import",
    "suppressions/export",
    "server/get",
    "server/update",
];

pub(super) const TARGET: Target = Target {
    name: "http",
    run,
    seeds,
    frames: &[
        "\0{}",
        "\0{\"to\": \"{}\"}",
        "\0{\"to\": [{}]}",
        "\0{\"headers\": {{}}}",
        "\0{\"attachments\": [{}]}",
        "\u{1}{\"data\": \"{}\"}",
        "\u{8}{\"events\": [{}]}",
        "\u{10}{\"items\": [{}]}",
        "\u{12}{\"csv\": \"{}\"}",
    ],
};

thread_local! {
    /// Started by the first input of a thread and shared by its inputs.
    static SERVICE: OnceCell<Service> = const { OnceCell::new() };
}

struct Service {
    runtime: Runtime,
    client: Client,
    key: String,
    _server: HttpServer,
    _folder: TempDir,
}

fn seeds() -> Vec<Vec<u8>> {
    let bodies = [
        (
            "send/message",
            r#"{"to": ["a@example.com", "B <b@example.com>"], "cc": "c@example.com", "from": "shop@example.test", "subject": "x", "plain_body": "x", "headers": {"X-A": ["1", "2"]}, "attachments": [{"name": "a", "data": "AAAA", "content_type": "text/plain"}], "metadata": {"a": "b"}, "track": {"opens": true}, "send_at": "2026-12-01T00:00:00Z"}"#,
        ),
        (
            "send/raw",
            r#"{"mail_from": "shop@example.test", "rcpt_to": ["a@example.com"], "data": "RnJvbTogc2hvcEBleGFtcGxlLnRlc3QNCg0KeA=="}"#,
        ),
        ("messages/message", r#"{"id": 1, "_expansions": true}"#),
        (
            "analytics/timeseries",
            r#"{"from": "2026-11-01T00:00:00Z", "to": "2026-11-02T00:00:00Z", "granularity": "hour", "timezone": "Europe/Berlin", "dimensions": ["tag"], "filters": {"domain": "example.test"}}"#,
        ),
        (
            "webhooks/create",
            r#"{"url": "https://example.com/hook", "events": ["message.delivered"], "format": "standard"}"#,
        ),
        (
            "suppressions/add",
            r#"{"items": [{"address": "a@example.com", "reason": "manual", "expires_at": "2030-01-01T00:00:00Z"}]}"#,
        ),
        ("suppressions/import", r#"{"csv": "address,reason\na@example.com,manual\n"}"#),
        (
            "server/update",
            r#"{"send_rate": "10/s", "hourly_limit": 5, "tracking": {"opens": true}, "retention": {"messages_days": 30}}"#,
        ),
    ];
    let seed = |(path, body): (&str, &str)| {
        let number = PATHS.iter().position(|known| *known == path).unwrap_or(0) as u8;
        [&[number], body.as_bytes()].concat()
    };
    bodies.into_iter().map(seed).collect()
}

fn run(bytes: &[u8]) {
    let Some((number, body)) = bytes.split_first() else { return };
    let path = format!("/api/v1/{}", PATHS[usize::from(*number) % PATHS.len()]);
    SERVICE.with(|service| {
        let service = service.get_or_init(start);
        let headers = [("x-server-api-key", service.key.as_str()), ("x-test-mode", "true")];
        let request = service.client.request(Method::POST, &path, &headers, Bytes::copy_from_slice(body));
        let answer = service.runtime.block_on(request).expect("the service answers");
        assert!(answer.status < 500, "{path}: {} {}", answer.status, answer.text());
    });
}

fn start() -> Service {
    let runtime =
        Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime starts");
    let folder = TempDir::new().expect("the temporary folder is writable");
    let settings = postroad_store::Settings::small(Database::Sqlite(folder.path().join("postroad.db")));
    let (client, key, server) = runtime.block_on(async {
        let clock = Arc::new(SystemClock);
        let role = Role::Node { identity: "fuzz".into() };
        let store = Store::open(settings, role, clock.clone()).await.expect("a store opens in a new folder");
        let hostname = DomainName::parse("mail.example.test").expect("the constant is a domain name");
        let app = App::new(store, clock, Limits::default(), hostname);
        let key = app.dev_setup().await.expect("the set-up of a new store succeeds").api_key;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("the loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let server = HttpServer::start(&Api::new(app, Settings::default()), listener, None, Mode::Serve);
        (Client::new(&format!("http://{address}")), key, server)
    });
    Service { runtime, client, key, _server: server, _folder: folder }
}
