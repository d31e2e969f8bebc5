//! SIGTERM: no new work, messages whose last bytes were sent may finish, the rest returns to the queue
//! untouched.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use postroad_testkit::dns_server::Failure;
use postroad_testkit::smtp_peer::{Answer, PeerTls, Script, Stage};
use postroad_testkit::{
    CatcherAnswer, HttpsAnswer, HttpsServer, SmtpClient, TestCertificate, WebhookCatcher, eventually,
};
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::limits::write_providers_file;
use super::outside::Outside;
use super::tls_demands::Authorities;
use crate::world::{Engine, both_engines, good_but};

const MESSAGES: usize = 20;

both_engines!(
    messages_whose_last_bytes_were_sent_finish_and_the_rest_is_released,
    a_stop_in_the_middle_of_a_transaction_costs_no_attempt
);

async fn messages_whose_last_bytes_were_sent_finish_and_the_rest_is_released(engine: Engine) {
    let outside = Outside::new();
    let late = Answer::reply("250 2.0.0 taken after all").after(Duration::from_secs(1));
    let peer = outside.site("slow.example", Script::new().on(Stage::Message, late));
    let file = write_providers_file(
        "[slow]\nmx = [\"slow.example\"]\nconnections_max = 2\nconnections_per_minute = 6000\n",
    );
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let mut world = outside.start(engine, &envs);
    // A site has one connection until it has replied to a message.
    let first = world.accepted_id(&good_but(json!({ "to": ["first@slow.example"] }))).await;
    world.until_status(first, "Sent").await;
    let addresses: Vec<String> = (0..MESSAGES).map(|number| format!("user-{number}@slow.example")).collect();
    let data = world.accepted(&good_but(json!({ "to": addresses }))).await;
    peer.wait_until(|record| record.messages.len() == 3).await;
    let start = Instant::now();
    assert!(world.daemon.terminate().success(), "{}", world.daemon.stderr_text());
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    let messages = peer.messages();
    assert_eq!(messages.len(), 3, "nothing new was begun");
    assert!(messages.iter().all(postroad_testkit::smtp_peer::ReceivedMessage::is_acknowledged));
    let finished: Vec<String> = messages.into_iter().map(|message| message.rcpt_to[0].clone()).collect();

    peer.set_script(Script::new());
    world.restart();
    for address in &addresses {
        let id = data["messages"][address]["id"].as_i64().unwrap();
        let deliveries = world.until_status(id, "Sent").await;
        assert_eq!(deliveries.len(), 1, "no attempt was counted: {deliveries:#?}");
        let reply = deliveries[0]["output"].as_str().unwrap();
        let is_from_before = reply == "250 2.0.0 taken after all";
        assert_eq!(is_from_before, finished.contains(address), "{address}: {reply}");
    }
    assert_eq!(peer.messages().len(), MESSAGES + 1, "each message arrived once");
}

async fn a_stop_in_the_middle_of_a_transaction_costs_no_attempt(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("tarpit.example", Script::new().on(Stage::RcptTo, Answer::stall()));
    let mut world = outside.start(engine, &[]);
    let id = world.accepted_id(&good_but(json!({"to": ["ann@tarpit.example"]}))).await;
    let is_asking = |line: &String| line.starts_with("RCPT");
    peer.wait_until(|record| record.connections.iter().any(|c| c.commands.iter().any(is_asking))).await;
    let start = Instant::now();
    assert!(world.daemon.terminate().success());
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    peer.set_script(Script::new());
    world.restart();
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
    assert_eq!(peer.messages().len(), 1);
}

/// Starts a host that accepts everything up to DATA and then reads no more. Returns its connection at that point.
fn start_deaf_host(address: SocketAddr) -> JoinHandle<std::net::TcpStream> {
    let listener = std::net::TcpListener::bind(address).expect("nobody else has the address");
    tokio::task::spawn_blocking(move || {
        let (mut stream, _) = listener.accept().expect("a client comes");
        let mut lines = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
        let mut line = String::from("banner");
        while !line.starts_with("DATA") {
            let reply = if line == "banner" { "220 deaf\r\n" } else { "250 ok\r\n" };
            stream.write_all(reply.as_bytes()).expect("it reads");
            line.clear();
            lines.read_line(&mut line).expect("it speaks");
        }
        stream.write_all(b"354 go on\r\n").expect("it reads");
        stream
    })
}

/// All of these hang: a name server, a TLS handshake, a host that reads no more, a webhook, an SMTP client and an HTTP
/// client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_stops_the_service_within_ten_seconds_whatever_hangs() {
    let outside = Outside::new();
    for name in ["silent.example", "mx.unnamed.example"] {
        outside.dns.fail(name, Failure::Silent);
    }
    outside.dns.mx("unnamed.example", 10, "mx.unnamed.example");
    let handshake = outside.site("handshake.example", Script::new().with_tls(PeerTls::Stall));
    let deaf_address = outside.new_address();
    outside.dns.mx("deaf.example", 10, "mx.deaf.example");
    outside.dns.a("mx.deaf.example", deaf_address);
    let deaf = start_deaf_host((deaf_address, outside.port()).into());
    let hooks = WebhookCatcher::start();
    hooks.answer("/hook", CatcherAnswer::Hang);
    let mut world = outside.start(Engine::Sqlite, &[]);
    let hook = json!({ "url": hooks.url("/hook"), "events": ["message.accepted"] });
    assert_eq!(world.call("/api/v1/webhooks/create", &hook).await["status"], "success");
    // More than the buffers of a connection hold; otherwise the last bytes would be sent already.
    let long = "x".repeat(8_000_000);
    let mut ids = Vec::new();
    for domain in ["silent.example", "unnamed.example", "handshake.example"] {
        ids.push(world.accepted_id(&good_but(json!({ "to": [format!("ann@{domain}")] }))).await);
    }
    let large = json!({ "to": ["ann@deaf.example"], "plain_body": long });
    ids.push(world.accepted_id(&good_but(large)).await);
    handshake
        .wait_until(|record| record.connections.iter().any(|c| c.commands.contains(&"STARTTLS".into())))
        .await;
    let stuck = deaf.await.unwrap();
    hooks.wait_for("/hook", 1);
    let port = world.daemon.ready()["smtp"]["starttls_port"].as_u64().unwrap() as u16;
    let _client = SmtpClient::connect(([127, 0, 0, 1], port).into()).await;
    let url = world.daemon.ready()["url"].as_str().unwrap().to_owned();
    let mut slow = std::net::TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    let key = &world.key;
    let head = format!("POST /api/v1/send/message HTTP/1.1\r\nHost: here\r\nX-Server-API-Key: {key}\r\n");
    slow.write_all(format!("{head}Content-Length: 100\r\n\r\n{{").as_bytes()).unwrap();
    let start = Instant::now();
    assert!(world.daemon.terminate().success(), "{}", world.daemon.stderr_text());
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}\n{}",
        start.elapsed(),
        world.daemon.stderr_text()
    );

    for name in ["silent.example", "mx.unnamed.example"] {
        outside.dns.clear_failures(name);
    }
    let _late = outside.site("silent.example", Script::new());
    let _named = outside.host("mx.unnamed.example", Script::new());
    handshake.set_script(Script::new());
    drop(stuck);
    let _recovered = outside.peer_at(deaf_address.into(), Script::new());
    world.restart();
    for id in ids {
        let deliveries = world.until_status(id, "Sent").await;
        assert_eq!(deliveries.len(), 1, "no attempt was counted: {deliveries:#?}");
    }
}

/// A host that neither accepts nor refuses connections, because its listen backlog is full.
struct FullHost {
    _listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl FullHost {
    async fn start(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("there are sockets");
        socket.set_reuseaddr(true).expect("a fresh socket takes options");
        socket.bind(address).expect("nobody else has the address");
        let listener = socket.listen(1).expect("a bound socket listens");
        let mut waiting = Vec::new();
        while let Ok(stream) =
            tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(address)).await
        {
            waiting.push(stream.expect("it is not refused"));
            assert!(waiting.len() < 100, "the backlog does not fill");
        }
        Self { _listener: listener, _waiting: waiting }
    }
}

/// Number of connections to `address` in state SYN_SENT (`02` in the kernel's table).
fn unanswered_connects(address: SocketAddr) -> usize {
    let SocketAddr::V4(address) = address else { panic!("{address} is not an IPv4 address") };
    let remote = format!("{:08X}:{:04X}", u32::from_le_bytes(address.ip().octets()), address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux lists its sockets");
    let fields = |line: &str| line.split_whitespace().skip(2).take(2).map(str::to_owned).collect::<Vec<_>>();
    table.lines().filter(|line| fields(line) == [remote.as_str(), "02"]).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_stops_the_service_within_ten_seconds_while_a_connect_and_an_mta_sts_request_hang() {
    let outside = Outside::new();
    let full_address = outside.new_address();
    outside.dns.mx("full.example", 10, "mx.full.example").a("mx.full.example", full_address);
    let full_address = SocketAddr::from((full_address, outside.port()));
    let full = FullHost::start(full_address).await;
    let web = TestCertificate::for_names(&["mta-sts.policy.example"]);
    let policies = HttpsServer::start(&web);
    let policy_url = "mta-sts.policy.example/.well-known/mta-sts.txt";
    policies.answer(policy_url, HttpsAnswer::Silent);
    outside.dns.txt("_mta-sts.policy.example", "v=STSv1; id=1;").a("mta-sts.policy.example", [127, 0, 0, 1]);
    let _peer = outside.site("policy.example", Script::new());
    let authorities = Authorities::of(&[&web]);
    let port = policies.address().port().to_string();
    let envs = [
        ("POSTROAD_DELIVERY_CA_FILE", authorities.path()),
        ("POSTROAD_DELIVERY_MTA_STS_PORT", port.as_str()),
    ];
    let mut world = outside.start(Engine::Sqlite, &envs);
    let mut ids = Vec::new();
    // The kernel may still list the connection attempt with which `FullHost` found its backlog full.
    let before = unanswered_connects(full_address);
    for domain in ["full.example", "policy.example"] {
        ids.push(world.accepted_id(&good_but(json!({ "to": [format!("ann@{domain}")] }))).await);
    }
    eventually(async || {
        let hangs = unanswered_connects(full_address) > before && policies.requests(policy_url) > 0;
        if hangs { Ok(()) } else { Err(format!("nothing hangs: {}", world.daemon.stderr_text())) }
    })
    .await;
    let start = Instant::now();
    assert!(world.daemon.terminate().success(), "{}", world.daemon.stderr_text());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());

    drop(full);
    let _recovered = outside.peer_at(full_address.ip(), Script::new());
    policies.answer(policy_url, HttpsAnswer::text("version: STSv1\r\nmode: none\r\nmax_age: 86400\r\n"));
    world.restart();
    for id in ids {
        let deliveries = world.until_status(id, "Sent").await;
        assert_eq!(deliveries.len(), 1, "no attempt was counted: {deliveries:#?}");
    }
}
