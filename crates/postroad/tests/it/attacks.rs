//! Attacks that once stopped the service or exhausted its memory, all at the same time, from one tenant and
//! from strangers. Another tenant's mail continues, and the service never takes more than 600 MB.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use postroad_testkit::SmtpClient;
use postroad_testkit::http::{Method, Reply};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::returns::bounce_listener;
use crate::smtp::{good_auth, tls_address};
use crate::world::{Engine, SEND, World, envelope, good_but, is_optimised_build};

const PEAK_MB_MAX: u64 = 600;
/// Longest time from request to answer of a victim's message during the attacks.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Time limit for the answer to an attacker, so that the test ends. A debug build, which shares two cores with other
/// tests, needs minutes.
fn attackers_answer_max() -> Duration {
    if is_optimised_build() { Duration::from_secs(30) } else { Duration::from_mins(5) }
}

/// Posts as an attacker, with the tenant's key.
async fn attack(world: &World, path: &str, body: &Value) -> Reply {
    let client = world.client.clone().with_timeout(attackers_answer_max());
    client.post_json(path, Some(&world.key), body).await.expect("the attacker is answered")
}

/// Peak memory of the service.
fn peak_mb(world: &World) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux reports the peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

fn address(world: &World) -> SocketAddr {
    world.daemon.ready()["url"].as_str().unwrap().trim_start_matches("http://").parse().unwrap()
}

/// Sends 800 kB of repeated `http`, each a possible start of a URL, to simulator recipients that open and click.
async fn send_incomplete_urls(world: &World) {
    for recipient in ["open@sim.postroad.test", "click@sim.postroad.test"] {
        let body = good_but(json!({"to": [recipient], "plain_body": "http".repeat(200_000)}));
        attack(world, SEND, &body).await;
    }
}

/// Mails compressed reports as a stranger, in thirty sessions at once.
async fn mail_compressed_reports(world: &World) {
    let mut text = String::from("<feedback>");
    while text.len() < 15 << 20 {
        text.push_str("<record><row><source_ip>192.0.2.1</source_ip><count>1</count></row></record>");
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let mail = [
        &b"Content-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n"[..],
        &base64(&packed),
    ]
    .concat();
    let mail = String::from_utf8(mail).unwrap();
    let to = format!(
        "dmarc-reports@rp.{}",
        world.daemon.ready()["hostname"].as_str().unwrap_or("postroad.localhost")
    );
    let session = async || {
        let client = SmtpClient::dial(bounce_listener(world)).await;
        let mut client = client.with_reply_time_max(attackers_answer_max());
        client.greet().await;
        client.deliver("", &[&to], &mail).await
    };
    for reply in join_all((0..30).map(|_| session())).await {
        assert!(reply.starts_with('4') || reply.starts_with('5'), "{reply}");
    }
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    use ::base64::Engine as _;
    let text = ::base64::prelude::BASE64_STANDARD.encode(bytes);
    text.as_bytes().chunks(76).flat_map(|line| [line, b"\r\n"].concat()).collect()
}

/// Makes requests whose answers would be large, and reads nothing. The connections stay open.
async fn leave_answers_unread(world: &World, streams: usize) -> Vec<TcpStream> {
    let events: Vec<String> = (0..65_001).map(|number| format!("\"{number}\"")).collect();
    let body = format!("{{\"url\": \"https://example.com/\", \"events\": [{}]}}", events.join(","));
    let request = format!(
        "POST /api/v1/webhooks/create HTTP/1.1\r\nHost: localhost\r\nX-Server-API-Key: {}\r\nContent-Length: {}\r\n\r\n{body}",
        world.key,
        body.len()
    );
    let mut open = Vec::new();
    for _ in 0..streams {
        let mut stream = TcpStream::connect(address(world)).await.unwrap();
        // Writing fails on a connection that the service has closed.
        let _ = stream.write_all(request.as_bytes()).await;
        open.push(stream);
    }
    open
}

/// Sends lists that split into millions of entries.
async fn send_comma_lists(world: &World) {
    for body in [
        json!({"to": ",".repeat(38 << 20)}),
        json!({"to": ["a@example.com"], "cc": "x:;,".repeat(9 << 20)}),
        json!({"to": vec![""; 2 << 20]}),
    ] {
        let reply = attack(world, SEND, &good_but(body)).await;
        assert!(matches!(reply.status, 200 | 503), "{}", reply.status);
    }
    let client = SmtpClient::dial(tls_address(world)).await.with_reply_time_max(attackers_answer_max());
    let mut client = client.tls_handshake().await.expect("the service speaks TLS");
    client.greet().await;
    assert_eq!(client.say(&good_auth(world)).await, "235 2.7.0 Authentication succeeded");
    let text = format!("From: {}\r\nSubject: x\r\n\r\nx", "x:;,\r\n ".repeat(3 << 20));
    let reply = client.deliver("shop@example.test", &["a@example.com"], &text).await;
    assert!(reply.starts_with('5'), "{reply}");
}

/// Calls `webhooks/test` for a webhook that never answers, with padded request bodies.
async fn test_hanging_webhook(world: &World) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let made = envelope(&attack(world, "/api/v1/webhooks/create", &json!({ "url": url })).await);
    let call = json!({ "id": made["data"]["id"], "padding": "x".repeat(300 << 10) });
    let tests = (0..250).map(|_| world.client.post_json("/api/v1/webhooks/test", Some(&world.key), &call));
    // Whether the calls are answered does not matter, only their effect on other tenants.
    let _ = tokio::time::timeout(Duration::from_secs(12), join_all(tests)).await;
}

/// Sends a large message of another tenant; returns how long the answer took.
async fn send_as_victim(world: &World, key: &str) -> Duration {
    let started = Instant::now();
    let body = json!({
        "to": ["a@example.com"], "from": "shop@victim.test", "subject": "x", "plain_body": "x".repeat(2 << 20),
    });
    let headers = [("x-server-api-key", key)];
    let reply = world.client.request(Method::POST, SEND, &headers, body.to_string().into()).await;
    let reply = reply.expect("the victim is answered");
    let answer: Value = reply.json();
    assert_eq!((reply.status, &answer["status"]), (200, &json!("success")), "{}", reply.text());
    started.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_attacks_together_stop_no_other_tenant_and_take_less_than_600_mb() {
    let world = World::start(Engine::Sqlite);
    world.admin(&["account", "create", "victim"]);
    world.admin(&["server", "create", "victim", "--account", "victim"]);
    world.admin(&["domain", "create", "victim.test", "--server", "victim"]);
    world.admin(&["domain", "set-verified", "victim.test", "--server", "victim"]);
    let key = world.admin(&["key", "create", "--server", "victim"])["api_key"].as_str().unwrap().to_owned();

    let unread = leave_answers_unread(&world, 60).await;
    let attacks = async {
        tokio::join!(
            send_incomplete_urls(&world),
            mail_compressed_reports(&world),
            send_comma_lists(&world),
            test_hanging_webhook(&world)
        );
    };
    let victim = async {
        let mut slowest = Duration::ZERO;
        for _ in 0..10 {
            slowest = slowest.max(send_as_victim(&world, &key).await);
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        slowest
    };
    let ((), slowest) = tokio::join!(attacks, victim);
    let peak = peak_mb(&world);
    drop(unread);
    assert!(peak < PEAK_MB_MAX, "the service had {peak} MB");
    assert!(slowest < ANSWER_MAX, "the answer to another tenant took {slowest:?}");
}
