//! Mailpit's API in `postroad dev`: direct calls, and the client `mailpit-api` from npm.

use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use postroad_testkit::SmtpClient;
use postroad_testkit::http::Reply;
use serde_json::{Value, json};

use crate::world::{Engine, World, good_but};

const MESSAGE: &str = "From: Shop <shop@unverified.example>\r\nTo: Ann <ann@example.net>, bob@example.org\r\n\
    Cc: carol@example.net\r\nReply-To: help@unverified.example\r\nMessage-ID: <one@unverified.example>\r\n\
    List-Unsubscribe: <https://unverified.example/u>, <mailto:u@unverified.example>\r\n\
    Date: Mon, 16 Nov 2026 10:00:00 +0100\r\nSubject: Your order\r\n\r\nThank you,   Ann.\r\n";

async fn call(world: &World, method: &str, path: &str, body: &str) -> Reply {
    let body = Bytes::from(body.to_owned());
    world.client.request(method.parse().unwrap(), path, &[], body).await.unwrap()
}

async fn get(world: &World, path: &str) -> Value {
    let reply = call(world, "GET", path, "").await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Waits until the inbox has the copies of all these recipients.
async fn wait_until_caught(world: &World, recipients: &[&str]) {
    for recipient in recipients {
        crate::delivery::inbox::wait_for_mail_to(world, recipient).await;
    }
}

/// Starts a world and sends two messages: one to four recipients through the SMTP port without AUTH, and one with an
/// attachment and HTML through the API.
async fn start_with_two_messages() -> World {
    let world = World::start(Engine::Sqlite);
    let port = world.daemon.ready()["smtp"]["plain_port"].as_u64().unwrap();
    let mut client = SmtpClient::connect(([127, 0, 0, 1], u16::try_from(port).unwrap()).into()).await;
    let to = ["ann@example.net", "bob@example.org", "carol@example.net", "hidden@example.net"];
    let reply = client.deliver("bounces@unverified.example", &to, MESSAGE).await;
    assert!(reply.starts_with("250 "), "{reply}");
    wait_until_caught(&world, &to).await;
    let body = json!({
        "to": ["Dora <dora@example.net>"], "subject": "Grüße", "html_body": "<p>Hallo <b>Welt</b></p>",
        "attachments": [{"name": "a.txt", "content_type": "text/plain", "data": "aGFsbG8="}],
    });
    world.accepted(&good_but(body)).await;
    wait_until_caught(&world, &["dora@example.net"]).await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_have_the_same_fields_as_in_mailpit() {
    let world = start_with_two_messages().await;
    let list = get(&world, "/api/v1/messages").await;
    assert_eq!(
        keys(&list),
        ["count", "messages", "messages_count", "messages_unread", "start", "tags", "total", "unread"]
    );
    assert_eq!((&list["total"], &list["messages_count"], &list["unread"]), (&json!(2), &json!(2), &json!(2)));
    let (newest, order) = (&list["messages"][0], &list["messages"][1]);
    assert_eq!(
        keys(order),
        [
            "Attachments",
            "Bcc",
            "Cc",
            "Created",
            "From",
            "ID",
            "MessageID",
            "Read",
            "ReplyTo",
            "Size",
            "Snippet",
            "Subject",
            "Tags",
            "To",
            "Username"
        ]
    );
    assert_eq!((&newest["Subject"], &newest["Attachments"]), (&json!("Grüße"), &json!(1)));
    assert_eq!(order["From"], json!({ "Name": "Shop", "Address": "shop@unverified.example" }));
    assert_eq!(
        order["To"],
        json!([{ "Name": "Ann", "Address": "ann@example.net" }, { "Name": "", "Address": "bob@example.org" }])
    );
    assert_eq!(order["Bcc"], json!([{ "Name": "", "Address": "hidden@example.net" }]));
    assert_eq!((&order["Snippet"], &order["Read"]), (&json!("Thank you, Ann."), &json!(false)));
    assert_eq!(order["MessageID"], "one@unverified.example");

    let id = order["ID"].as_str().expect("ids are texts");
    let message = get(&world, &format!("/api/v1/message/{id}")).await;
    assert_eq!(
        keys(&message),
        [
            "Attachments",
            "Bcc",
            "Cc",
            "Date",
            "From",
            "HTML",
            "ID",
            "Inline",
            "ListUnsubscribe",
            "MessageID",
            "ReplyTo",
            "ReturnPath",
            "Size",
            "Subject",
            "Tags",
            "Text",
            "To",
            "Username"
        ]
    );
    assert_eq!(message["Date"], "2026-11-16T09:00:00.000Z");
    assert!(message["Text"].as_str().unwrap().starts_with("Thank you"), "{message}");
    assert_eq!(
        message["ListUnsubscribe"]["Links"],
        json!(["https://unverified.example/u", "mailto:u@unverified.example"])
    );
    let latest = get(&world, "/api/v1/message/latest").await;
    let file = &latest["Attachments"][0];
    assert_eq!((&file["FileName"], &file["Size"]), (&json!("a.txt"), &json!(5)));
    let part = format!("/api/v1/message/latest/part/{}", file["PartID"].as_str().unwrap());
    assert_eq!(call(&world, "GET", &part, "").await.text(), "hallo");
    assert_eq!(latest["HTML"], "<p>Hallo <b>Welt</b></p>");
    let view = call(&world, "GET", "/view/latest.html", "").await;
    assert_eq!(view.text(), "<p>Hallo <b>Welt</b></p>");
    assert!(view.header("content-security-policy").is_some_and(|policy| policy.starts_with("sandbox;")));
    assert!(call(&world, "GET", &format!("/view/{id}.txt"), "").await.text().starts_with("Thank you"));

    let headers = get(&world, &format!("/api/v1/message/{id}/headers")).await;
    assert_eq!(headers["Message-Id"], json!(["<one@unverified.example>"]));
    let raw = call(&world, "GET", &format!("/api/v1/message/{id}/raw"), "").await;
    assert!(raw.text().contains("\r\nSubject: Your order\r\n"), "{}", raw.text());
    let second_page = get(&world, "/api/v1/messages?limit=1&start=1").await;
    assert_eq!(
        (&second_page["unread"], &second_page["messages"][0]["Read"], &second_page["count"]),
        (&json!(0), &json!(true), &json!(1))
    );
    let info = get(&world, "/api/v1/info").await;
    assert_eq!((&info["Messages"], &info["Unread"]), (&json!(2), &json!(0)));
    for path in
        ["/api/v1/message/999", "/api/v1/message/x", "/api/v1/message/latest/part/9", "/view/latest.exe"]
    {
        assert_eq!(call(&world, "GET", path, "").await.status, 404, "{path}");
    }
    // Our own endpoints keep their paths and envelopes beside Mailpit's.
    let own = call(&world, "GET", "/api/v1/message/latest/nothing", "").await;
    assert_eq!((own.status, &own.json()["data"]["code"]), (404, &json!("UnknownEndpoint")));
    let own = world.call("/api/v1/messages/search", &json!({})).await;
    assert_eq!(own["status"], "success");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_and_deletions_work_as_in_mailpit() {
    let world = start_with_two_messages().await;
    let count = async |query: &str| {
        let path = format!("/api/v1/search?query={}", query.replace(' ', "+").replace('"', "%22"));
        get(&world, &path).await["messages_count"].as_u64().unwrap()
    };
    for (query, expected) in [
        ("to:ann@example.net", 1),
        ("to:hidden@example.net", 0),
        ("bcc:hidden", 1),
        ("addressed:EXAMPLE.NET", 2),
        ("subject:\"your order\"", 1),
        ("subject:\"order your\"", 0),
        ("!subject:order", 1),
        ("from:shop", 2),
        ("hallo", 1),
        ("hallo ann", 0),
        ("has:attachment", 1),
        ("is:unread", 2),
        ("message-id:one@unverified.example", 1),
        ("after:2020-01-01 before:2999-01-01", 2),
        ("larger:1M", 0),
    ] {
        assert_eq!(count(query).await, expected, "{query}");
    }
    assert_eq!(call(&world, "GET", "/api/v1/search", "").await.status, 400);
    assert_eq!(call(&world, "PUT", "/api/v1/messages", r#"{"Read": true}"#).await.text(), "ok");
    assert_eq!(count("is:unread").await, 0);
    assert_eq!(call(&world, "DELETE", "/api/v1/search?query=subject%3Aorder", "").await.text(), "ok");
    let left = get(&world, "/api/v1/messages").await;
    assert_eq!((&left["total"], &left["messages"][0]["Subject"]), (&json!(1), &json!("Grüße")));
    assert_eq!(call(&world, "DELETE", "/api/v1/messages", "not JSON").await.status, 400);
    assert_eq!(call(&world, "DELETE", "/api/v1/messages", r#"{"IDs": ["999"]}"#).await.text(), "ok");
    assert_eq!(get(&world, "/api/v1/messages").await["total"], 1);
    let id = left["messages"][0]["ID"].as_str().unwrap();
    let body = format!(r#"{{"IDs": ["{id}"]}}"#);
    assert_eq!(call(&world, "DELETE", "/api/v1/messages", &body).await.text(), "ok");
    assert_eq!(get(&world, "/api/v1/messages").await["total"], 0);
    assert_eq!(call(&world, "DELETE", "/api/v1/messages", "").await.text(), "ok");
    assert_eq!(call(&world, "GET", "/api/v1/message/latest", "").await.status, 404);
    assert_eq!(call(&world, "POST", "/api/v1/messages", "{}").await.status, 405);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_checks_are_answered_unless_their_host_header_is_foreign() {
    let world = World::start(Engine::Sqlite);
    for path in ["/livez", "/readyz"] {
        assert_eq!(call(&world, "GET", path, "").await.status, 200, "{path}");
        assert_eq!(call(&world, "HEAD", path, "").await.status, 200, "{path}");
        let foreign_host =
            world.client.request("GET".parse().unwrap(), path, &[("host", "evil.example")], Bytes::new());
        assert_eq!(foreign_host.await.unwrap().status, 403, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mailpit_client_from_npm_works_unchanged() {
    let world = start_with_two_messages().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let libraries =
        Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("node-for-tests").join("node_modules");
    let mut command = Command::new("node");
    command.arg(folder.join("mailpit_api.js")).arg(world.daemon.ready()["url"].as_str().unwrap());
    command.env("NODE_PATH", libraries);
    let output =
        tokio::task::spawn_blocking(move || command.output().expect("node is installed")).await.unwrap();
    let output_text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(
        !output_text.contains("Cannot find module 'mailpit-api'"),
        "`cargo xtask test` installs it:\n{output_text}"
    );
    assert!(output.status.success(), "{output_text}");
    assert_eq!(get(&world, "/api/v1/messages").await["total"], 0);
}
