//! `postroad dev` in the place of a mail catcher: the port without login, fixed keys, other host names.

use std::net::SocketAddr;

use bytes::Bytes;
use postroad_testkit::http::{Client, Reply};
use postroad_testkit::{Daemon, SmtpClient, daemon};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::delivery::inbox::wait_for_mail_to;
use crate::world::{DEV_ARGUMENTS, Engine, SEND, World, both_engines, good, good_but, program};

const UNVERIFIED_MAIL: &str =
    "From: Anybody <any@unverified.example>\r\nTo: ann@example.net\r\nSubject: Plain\r\n\r\nHello.\r\n";

fn plain_address(ready: &Value) -> SocketAddr {
    let port = ready["smtp"]["plain_port"].as_u64().expect("the ready line has the port");
    SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap()))
}

/// Starts `dev` with further arguments, on a folder.
fn start(folder: &TempDir, args: &[&str]) -> Daemon {
    let data_dir = folder.path().join("data");
    let all = DEV_ARGUMENTS.iter().chain(args).copied().chain(["--data-dir", data_dir.to_str().unwrap()]);
    Daemon::start(program(), all, &[])
}

fn local_client(daemon: &Daemon) -> Client {
    let url = daemon.ready()["url"].as_str().unwrap();
    let port = url.rsplit_once(':').unwrap().1;
    Client::new(&format!("http://127.0.0.1:{port}"))
}

async fn send(client: &Client, key: &str, body: &Value) -> Value {
    client.post_json(SEND, Some(key), body).await.unwrap().json()
}

fn trace(world: &World, token: &str) -> Value {
    let (success, out, errors) = world.command_output("trace", &[token]);
    assert!(success, "{errors}");
    serde_json::from_str(&out).unwrap()
}

async fn get(client: &Client, path: &str, headers: &[(&str, &str)]) -> Reply {
    client.request("GET".parse().unwrap(), path, headers, Bytes::new()).await.unwrap()
}

both_engines!(mail_without_login_from_any_sender_is_delivered);

async fn mail_without_login_from_any_sender_is_delivered(world: World) {
    let mut client = SmtpClient::connect(plain_address(world.daemon.ready())).await;
    let offered = client.say("EHLO again.example").await;
    assert!(!offered.contains("AUTH") && !offered.contains("STARTTLS"), "{offered}");
    let reply =
        client.deliver("x@elsewhere.example", &["ann@example.net", "bob@example.org"], UNVERIFIED_MAIL).await;
    let token = reply.strip_prefix("250 2.0.0 OK queued as ").expect("it is queued").to_owned();
    for recipient in ["ann@example.net", "bob@example.org"] {
        let caught = wait_for_mail_to(&world, recipient).await;
        assert_eq!(caught["subject"], "Plain");
        assert_eq!(caught["headers"]["from"], json!(["Anybody <any@unverified.example>"]));
        assert!(caught["headers"]["dkim-signature"][0].as_str().unwrap().contains("d="), "{caught}");
        assert!(caught["mail_from"].as_str().unwrap().contains("@rp."), "{caught}");
    }
    let traced = trace(&world, &token);
    let id = traced[0]["id"].as_i64().unwrap();
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries[0]["mx"], "inbox.localhost");
    // The API accepts only senders of verified domains.
    let refused = world.call(SEND, &good_but(json!({ "from": "any@unverified.example" }))).await;
    assert_eq!(refused["data"]["code"], "UnauthenticatedFromAddress");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_without_a_sender_is_refused_on_the_port_without_login_too() {
    let world = World::start(Engine::Sqlite);
    let mut client = SmtpClient::connect(plain_address(world.daemon.ready())).await;
    for (mail, problem) in [
        ("Subject: Nobody\r\n\r\nx\r\n", "550 5.6.0 The message has no From header"),
        ("From: nobody at all\r\nSubject: Nobody\r\n\r\nx\r\n", "550 5.6.0 The From header "),
    ] {
        let reply = client.deliver("x@elsewhere.example", &["ann@example.net"], mail).await;
        assert!(reply.starts_with(problem), "{reply}");
    }
    world.admin(&["server", "suspend", "dev", "--reason", "test"]);
    let reply = client.deliver("x@elsewhere.example", &["ann@example.net"], UNVERIFIED_MAIL).await;
    assert!(reply.starts_with("554 5.7.1 "), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_any_from_option_applies_to_the_api_too() {
    let folder = TempDir::new().unwrap();
    let daemon = start(&folder, &["--any-from"]);
    let (client, key) = (local_client(&daemon), daemon.ready()["api_key"].as_str().unwrap());
    for from in ["Any Body <any@unverified.example>", "shop@example.test"] {
        let body =
            good_but(json!({ "from": from, "sender": "other@elsewhere.example", "to": ["ann@example.net"] }));
        let answer = send(&client, key, &body).await;
        assert_eq!(answer["status"], "success", "{answer}");
    }
    // The sender must still be an address.
    let answer = send(&client, key, &good_but(json!({ "from": "nobody" }))).await;
    assert_eq!(answer["status"], "parameter-error", "{answer}");
    let caught = client.get("/dev/messages/wait?to=ann@example.net&timeout=20").await.unwrap();
    assert_eq!(caught.status, 200, "{}", caught.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fixed_key_is_the_same_at_every_start() {
    let folder = TempDir::new().unwrap();
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let mut daemon = start(&folder, &["--api-key", "key-of-our-ci"]);
        assert_eq!(daemon.ready()["api_key"], "key-of-our-ci");
        secrets.push(daemon.ready()["api_secret"].clone());
        assert_eq!(send(&local_client(&daemon), "key-of-our-ci", &good()).await["status"], "success");
        assert!(daemon.terminate().success());
    }
    assert_eq!(secrets[0], secrets[1]);
    let mut daemon = start(&folder, &[]);
    assert_ne!(daemon.ready()["api_key"], "key-of-our-ci");
    assert!(daemon.terminate().success());
    for (key, needed) in [("with space", "--api-key must be 1 to 100"), ("", "--api-key must be 1 to 100")] {
        let output = daemon::command(program(), &[])
            .args(DEV_ARGUMENTS)
            .args(["--api-key", key, "--data-dir"])
            .arg(folder.path().join("data"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(needed), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_with_a_foreign_host_or_origin_header_are_refused() {
    let folder = TempDir::new().unwrap();
    let daemon = start(&folder, &[]);
    let client = local_client(&daemon);
    let key = daemon.ready()["api_key"].as_str().unwrap();
    for path in [
        "/sign_in",
        "/dev/",
        "/dev/messages",
        "/api/v1/info",
        "/api/v1/messages",
        "/api/v1/openapi.json",
        "/health",
    ] {
        for own in ["localhost:8025", "127.0.0.1", "[::1]:1", "mail.localhost"] {
            assert_eq!(get(&client, path, &[("Host", own)]).await.status, 200, "{path} {own}");
        }
        for (headers, code) in [
            ([("Host", "evil.example")], "ForeignHost"),
            ([("Host", "10.0.0.1:8025")], "ForeignHost"),
            ([("Origin", "http://evil.example")], "ForeignOrigin"),
            ([("Origin", "null")], "ForeignOrigin"),
        ] {
            let reply = get(&client, path, &headers).await;
            assert_eq!((reply.status, &reply.json()["code"]), (403, &json!(code)), "{path} {headers:?}");
        }
        assert_eq!(get(&client, path, &[("Origin", "http://localhost:3000")]).await.status, 200, "{path}");
    }
    let headers = [("Host", "evil.example"), ("X-Server-API-Key", key), ("Content-Type", "application/json")];
    let body = Bytes::from(good().to_string());
    let reply = client.request("POST".parse().unwrap(), SEND, &headers, body).await.unwrap();
    assert_eq!(reply.status, 403, "{}", reply.text());
    assert_eq!(client.get("/dev/messages").await.unwrap().json()["messages"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dev_in_a_container_is_reached_by_the_names_given_as_hosts() {
    let folder = TempDir::new().unwrap();
    let daemon = start(&folder, &["--listen", "0.0.0.0", "--host", "mail", "--host", "Mail.Internal"]);
    let url = daemon.ready()["url"].as_str().unwrap().to_owned();
    assert!(url.starts_with("http://mail:"), "{url}");
    let sign_in_url = daemon.ready()["sign_in_url"].as_str().unwrap();
    assert!(sign_in_url.starts_with(&format!("{url}/")), "{sign_in_url}");
    assert_eq!(daemon.ready()["smtp"]["host"], "mail");
    assert!(daemon.stderr_text().contains("other machines can reach it"), "{}", daemon.stderr_text());
    let client = local_client(&daemon);
    for own in ["mail", "MAIL:8025", "mail.internal", "172.17.0.2:8025", "localhost"] {
        assert_eq!(get(&client, "/dev/messages", &[("Host", own)]).await.status, 200, "{own}");
    }
    let foreign = get(&client, "/dev/messages", &[("Host", "evil.example")]).await;
    assert_eq!(foreign.status, 403);
    assert!(
        foreign.text().contains("--host NAME") && foreign.text().contains("mail.internal"),
        "{}",
        foreign.text()
    );
}

#[test]
fn listening_beyond_the_loopback_needs_the_listen_option() {
    let folder = TempDir::new().unwrap();
    let envs = [("POSTROAD_HTTP_LISTEN", "0.0.0.0:0"), ("POSTROAD_HTTP_ALLOW_PLAIN", "true")];
    let output = daemon::command(program(), &envs)
        .args(["dev", "--json", "--data-dir"])
        .arg(folder.path().join("data"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("--listen"), "{text}");
}

#[test]
fn taken_ports_are_skipped_with_a_warning() {
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let start = |folder: &TempDir| {
        let data_dir = folder.path().to_str().unwrap();
        Daemon::start(program(), ["dev", "--json", "--data-dir", data_dir], &[])
    };
    let [one, other] = folders.each_ref().map(start);
    let ports = |daemon: &Daemon| {
        let smtp = &daemon.ready()["smtp"];
        let smtp =
            ["plain_port", "starttls_port", "tls_port", "bounce_port"].map(|name| smtp[name].to_string());
        let http = daemon.ready()["url"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
        smtp.into_iter().chain([http]).collect::<Vec<String>>()
    };
    let (first, second) = (ports(&one), ports(&other));
    for (first_port, second_port) in first.iter().zip(&second) {
        assert_ne!(first_port, second_port);
        let warning = format!("using {second_port} instead");
        assert!(other.stderr_text().contains(&warning), "{warning}: {}", other.stderr_text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wait_endpoint_filters_by_text_and_time_and_extracts_links_and_codes() {
    let world = World::start(Engine::Sqlite);
    let mail = |text: &str, html: Option<&str>| {
        good_but(
            json!({ "to": ["ann@example.net"], "subject": "Sign in", "plain_body": text, "html_body": html }),
        )
    };
    let html = "<p>Your code is <b>482 913</b></p><a href=\"https://example.com/in?a=1&amp;b=2\">Sign in</a>";
    world.accepted(&mail("Your code\nis 111222. Or https://example.com/old", None)).await;
    wait_for_mail_to(&world, "ann@example.net").await;
    world.accepted(&mail("See the HTML at http://example.com/plain.", Some(html))).await;
    let wait = async |query: &str| world.client.get(&format!("/dev/messages/wait?{query}")).await.unwrap();

    let old = wait("text=Your+code+is+111222&timeout=20&extract=codes,links").await.json();
    assert_eq!((&old["codes"], &old["links"]), (&json!(["111222"]), &json!(["https://example.com/old"])));
    let new = wait("text=482+913&timeout=20").await.json();
    assert!(new.get("links").is_none() && new.get("codes").is_none(), "{new}");
    let found = world.client.get(&format!("/dev/messages/{}/extract", new["id"])).await.unwrap().json();
    assert_eq!(found["links"], json!(["https://example.com/in?a=1&b=2", "http://example.com/plain"]));
    let shown = world.client.get(&format!("/dev/messages/{}?extract=links", new["id"])).await.unwrap().json();
    assert_eq!((&shown["links"], shown.get("codes")), (&found["links"], None));

    let since = new["received_at"].as_str().unwrap();
    let latest = wait(&format!("to=ann@example.net&since={since}&timeout=5")).await.json();
    assert_eq!(latest["id"], new["id"]);
    assert_eq!(wait("text=482+914&timeout=0").await.status, 404);
    assert_eq!(wait("since=2999-01-01T00:00:00Z&timeout=0").await.status, 404);
    for bad in ["since=soon", "extract=images", "texts=x"] {
        assert_eq!(wait(bad).await.status, 400, "{bad}");
    }
}
