//! Limits on the threads and memory that one tenant can use.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postroad_testkit::http::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::accounts::{ACCOUNT, SERVER, call, call_ok, ready_field};
use crate::world::{Engine, SEND, World, good_but};

/// Creates another server, which may send from `other.test`; returns its key.
pub(crate) fn create_other_server(world: &World) -> String {
    world.admin(&["account", "create", "Other"]);
    world.admin(&["server", "create", "other", "--account", "Other"]);
    world.admin(&["domain", "create", "other.test", "--server", "other"]);
    world.admin(&["domain", "set-verified", "other.test", "--server", "other"]);
    world.admin(&["key", "create", "--server", "other"])["api_key"].as_str().unwrap().to_owned()
}

/// Entries beyond the limit of a list are never dropped silently: the rest of the list would mean something else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_with_too_many_entries_in_a_request_are_refused() {
    let world = World::start(Engine::Sqlite);
    let account = (ACCOUNT, ready_field(&world, "account_api_key"));
    let server = (SERVER, world.key.as_str());
    for (key, path, field, entry, max) in [
        (server, "messages/search", "status", "Sent", 9),
        (account, "account_keys/create", "scopes", "servers:read", 30),
    ] {
        let list = |count| json!({"name": "x", field: vec![entry; count]});
        call_ok(&world, key, path, &list(max)).await;
        let refused = call(&world, key, path, &list(max + 1)).await;
        assert_eq!(refused["data"]["errors"][0]["pointer"], format!("/{field}"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_sends_go_on_while_a_webhook_of_another_server_hangs() {
    let world = World::start(Engine::Sqlite);
    let key = create_other_server(&world);
    // Accepts connections and never answers.
    let hanging = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", hanging.local_addr().unwrap());
    let accepting = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = hanging.accept().await {
            open.push(stream);
        }
    });
    let created = world.call("/api/v1/webhooks/create", &json!({ "url": url })).await;
    let padded = json!({"id": created["data"]["id"], "padding": "x".repeat(300 << 10)});
    let url = world.daemon.ready()["url"].as_str().unwrap().to_owned();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..250 {
        let (client, key, padded) = (Client::new(&url), world.key.clone(), padded.clone());
        waiting.spawn(async move { client.post_json("/api/v1/webhooks/test", Some(&key), &padded).await });
    }
    let attached = STANDARD.encode(vec![7; 1 << 20]);
    let large = good_but(json!({
        "from": "shop@other.test", "attachments": [{"name": "a.bin", "data": attached}],
    }));
    let begun = Instant::now();
    for _ in 0..10 {
        let sent = world.call_as(&key, SEND, &large).await;
        assert_eq!(sent["status"], "success", "{sent}");
    }
    // Each post to the webhook ends after 15 seconds; a send that waited for one would take longer.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    waiting.abort_all();
    accepting.abort();
}

/// Memory of the service: now, and the peak since the last call.
fn memory_bytes(world: &World) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.daemon.pid())).unwrap();
    let bytes_of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    };
    let found = (bytes_of("VmRSS:"), bytes_of("VmHWM:"));
    std::fs::write(format!("/proc/{}/clear_refs", world.daemon.pid()), "5").unwrap();
    found
}

/// Bodies of several megabytes of tiny pieces; a parser that keeps each piece would need many times their size.
fn heavy_requests() -> Vec<(&'static str, String, Value)> {
    const MEGABYTES: usize = 6;
    let size = MEGABYTES << 20;
    let many = |piece: &str| piece.repeat(size / piece.len());
    let list = |piece: &str| format!("[{}{piece}]", format!("{piece},").repeat(size / (piece.len() + 1)));
    let object = |name: &str, text: String| format!(r#"{{"{name}":{text}}}"#);
    let text = |text: String| json!(text).to_string();
    let webhooks = "/api/v1/webhooks/create";
    let add = "/api/v1/suppressions/add";
    let import = "/api/v1/suppressions/import";
    let update = "/api/v1/server/update";
    let summary = "/api/v1/analytics/summary";
    let all = [
        (webhooks, object("events", list("\"x\""))),
        (webhooks, object("events", list("1"))),
        (webhooks, object("url", text(many("\n")))),
        (webhooks, format!("{{{}\"a\":1}}", many("\"a\":1,"))),
        ("/api/v1/webhooks/update", object("format", text(many("\\")))),
        ("/api/v1/events/list", object("types", list("\"\""))),
        ("/api/v1/events/list", object("since_cursor", text(many("A")))),
        (add, object("items", list("{}"))),
        (add, object("items", list("[]"))),
        (add, object("details", text(many("a ")))),
        (add, object("address", text(many("a@")))),
        ("/api/v1/suppressions/remove", object("items", list("{\"address\":1}"))),
        (import, object("csv", text(many(",")))),
        (import, object("csv", text(many("a\n")))),
        (import, object("csv", text(many("\"\",")))),
        (import, object("csv", text(many("\r")))),
        (summary, object("filters", format!("{{{}\"a\":1}}", many("\"\":1,")))),
        (summary, object("tag", list("\"\""))),
        ("/api/v1/analytics/timeseries", object("dimensions", list("\"tag\""))),
        ("/api/v1/analytics/top", object("metric", text(many("é")))),
        (update, object("tracking", object("excluded_hosts", list("\"a\"")))),
        (update, object("name", text(many("\u{1}")))),
        ("/api/v1/messages/message", object("_expansions", list("\"x\""))),
        ("/api/v1/messages/message", object("id", "1".repeat(size))),
        (SEND, object("headers", format!("{{{}\"a\":1}}", many("\"a\":1.5,")))),
        (SEND, object("metadata", format!("{{{}\"a\":1}}", many("\"a\":\"\",")))),
        (SEND, object("to", text(many(",")))),
        (SEND, object("odd", list("[]"))),
    ];
    let form =
        |body: &str| format!("params={}", body.replace('%', "%25").replace('&', "%26").replace('+', "%2B"));
    let mut requests: Vec<(&str, String, Value)> =
        all.into_iter().map(|(path, body)| (path, body, json!("application/json"))).collect();
    let as_form = form(&object("url", text(many("+"))));
    requests.push((webhooks, as_form, json!("application/x-www-form-urlencoded")));
    requests.push((webhooks, many("a=1&"), json!("application/x-www-form-urlencoded")));
    let part = "--xx\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n";
    requests.push((webhooks, many(part) + "--xx--\r\n", json!("multipart/form-data; boundary=xx")));
    requests
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_takes_no_more_memory_than_three_times_its_bytes_and_a_megabyte() {
    /// Error of the measurement: threads, pages that the allocator keeps, the store's own work.
    const SLACK_BYTES: u64 = 6 << 20;
    let world = World::start(Engine::Sqlite);
    // Warm-up: memory that the service allocates only once is allocated now.
    for _ in 0..3 {
        let warm = json!({"csv": "a,".repeat(2 << 20)}).to_string();
        world.request("POST", "/api/v1/suppressions/import", &[], warm).await;
        let list = json!({"events": vec!["x"; 1 << 20]}).to_string();
        world.request("POST", "/api/v1/webhooks/create", &[], list).await;
    }
    for (path, body, content_type) in heavy_requests() {
        let (before, _) = memory_bytes(&world);
        let bytes = body.len() as u64;
        let beginning = body[..body.floor_char_boundary(60)].to_owned();
        let reply =
            world.request("POST", path, &[("content-type", content_type.as_str().unwrap())], body).await;
        assert_eq!(reply.status, 200, "{path} {beginning}: {}", reply.text());
        let (_, peak) = memory_bytes(&world);
        let taken = peak.saturating_sub(before);
        assert!(
            taken <= 3 * bytes + (1 << 20) + SLACK_BYTES,
            "{path} {beginning}: {bytes} bytes took {taken}"
        );
    }
}
