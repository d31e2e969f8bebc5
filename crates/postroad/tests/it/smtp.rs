//! SMTP submission from outside: the replies that docs/smtp.md lists, on both engines.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use postroad_testkit::{Daemon, SmtpClient, TestCertificate};
use serde_json::{Value, json};

use crate::world::{Engine, RAW, World, both_engines, program};

const FROM: &str = "shop@example.test";
const TO: [&str; 2] = ["ann@example.com", "bob@example.org"];
const QUEUED: &str = "250 2.0.0 OK queued as ";

fn address_of(ready: &Value, name: &str) -> SocketAddr {
    let port = ready["smtp"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {ready}"));
    SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap()))
}

pub(crate) fn starttls_address(world: &World) -> SocketAddr {
    address_of(world.daemon.ready(), "starttls_port")
}

pub(crate) fn tls_address(world: &World) -> SocketAddr {
    address_of(world.daemon.ready(), "tls_port")
}

pub(crate) fn auth_plain(key: &str, secret: &str) -> String {
    format!("AUTH PLAIN {}", BASE64_STANDARD.encode(format!("\0{key}\0{secret}")))
}

pub(crate) fn good_auth(world: &World) -> String {
    auth_plain(&world.key, world.daemon.ready()["api_secret"].as_str().unwrap())
}

/// Connects with implicit TLS and authenticates.
pub(crate) async fn log_in(world: &World) -> SmtpClient {
    let mut client = SmtpClient::connect_tls(tls_address(world)).await;
    assert_eq!(client.say(&good_auth(world)).await, "235 2.7.0 Authentication succeeded");
    client
}

pub(crate) fn text(headers: &str) -> String {
    format!("{headers}From: Shop <{FROM}>\r\nSubject: Hello\r\n\r\nHello there")
}

both_engines!(
    each_success_and_refusal_has_the_documented_reply,
    acknowledged_messages_survive_kill_9,
    a_key_that_may_not_send_from_here_is_refused
);

async fn each_success_and_refusal_has_the_documented_reply(world: World) {
    let mut client = SmtpClient::connect(starttls_address(&world)).await;
    let no_tls = "530 5.7.0 Must issue a STARTTLS command first";
    assert_eq!(client.say(&good_auth(&world)).await, no_tls);
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, no_tls);

    let mut client = SmtpClient::connect_starttls(starttls_address(&world)).await;
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, "530 5.7.0 Authentication required");
    let wrong = auth_plain(&world.key, "wrong");
    assert_eq!(client.say(&wrong).await, "535 5.7.8 Authentication credentials invalid");
    assert_eq!(client.say(&good_auth(&world)).await, "235 2.7.0 Authentication succeeded");
    let too_large = "552 5.3.4 The message is too large";
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}> SIZE=26214401")).await, too_large);
    let foreign = "550 5.7.1 The From address is not authorised to send mail from this server";
    for head in ["From: ceo@bank.example\r\n", "From: shop@example.test, ceo@bank.example\r\n"] {
        assert_eq!(client.deliver(FROM, &TO, &format!("{head}\r\nx")).await, foreign);
    }
    let reply = client.deliver(FROM, &TO, &text("")).await;
    assert!(reply.starts_with(QUEUED) && reply.len() == QUEUED.len() + 16, "{reply}");

    let line = "x".repeat(998) + "\r\n";
    let large = text("") + "\r\n" + &line.repeat(26_300);
    assert_eq!(client.deliver(FROM, &TO, &large).await, too_large);

    let recipients: String =
        (0..=1_000).fold(String::new(), |all, at| all + &format!("RCPT TO:<r{at}@example.com>\r\n"));
    client.send(format!("MAIL FROM:<{FROM}>\r\n{recipients}RSET\r\n").as_bytes()).await;
    for _ in 0..=1_000 {
        assert!(client.reply().await.starts_with("250 "));
    }
    assert_eq!(client.reply().await, "452 4.5.3 Too many recipients");
    assert_eq!(client.reply().await, "250 2.0.0 OK");

    client.send(b"NOOP\n").await;
    assert!(client.reply().await.starts_with("500 5.5.2 "));
    world.admin(&["server", "suspend", "dev", "--reason", "unpaid"]);
    let suspended = "554 5.7.1 The mail server has been suspended";
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, suspended);
    let mut other = SmtpClient::connect_tls(tls_address(&world)).await;
    assert_eq!(other.say(&good_auth(&world)).await, suspended);
    assert_eq!(client.say("QUIT").await, "221 2.0.0 Bye");
}

async fn acknowledged_messages_survive_kill_9(world: World) {
    let mut world = world;
    let mut replies = Vec::new();
    for at in 0..20 {
        let keyed = text(&format!("X-Idempotency-Key: order {at}\r\n"));
        replies.push(log_in(&world).await.deliver(FROM, &TO, &keyed).await);
        assert!(replies[at].starts_with(QUEUED), "{}", replies[at]);
    }
    world.crash_and_restart();
    let mut client = log_in(&world).await;
    for (at, first) in replies.iter().enumerate() {
        // The idempotency key was written in the transaction of its message: a repetition finds both.
        let keyed = text(&format!("X-Idempotency-Key: order {at}\r\n"));
        assert_eq!(client.deliver(FROM, &TO, &keyed).await, *first);
    }
    let other = json!({"mail_from": FROM, "rcpt_to": TO, "data": BASE64_STANDARD.encode(text(""))});
    let answer = world.call_with(RAW, &[("Idempotency-Key", "order 0")], &other).await;
    assert_eq!(answer["data"]["code"], "IdempotencyConflict", "both entry points share the keys: {answer}");
}

async fn a_key_that_may_not_send_from_here_is_refused(world: World) {
    let read = world.admin(&["key", "create", "--server", "dev", "--scope", "read"]);
    let elsewhere = world.admin(&["key", "create", "--server", "dev", "--allow", "192.0.2.0/24"]);
    let revoked = world.admin(&["key", "create", "--server", "dev"]);
    world.admin(&["key", "revoke", &revoked["id"].to_string()]);
    for made in [read, elsewhere, revoked] {
        let mut client = SmtpClient::connect_tls(tls_address(&world)).await;
        let auth = auth_plain(made["api_key"].as_str().unwrap(), made["api_secret"].as_str().unwrap());
        assert!(client.say(&auth).await.starts_with("535 5.7.8 "));
    }
}

#[tokio::test]
async fn an_ip_address_sends_without_auth_if_a_credential_is_bound_to_it() {
    let world = World::start_with(Engine::Sqlite, &[("POSTROAD_SMTP_PLAIN_LISTEN", "127.0.0.1:0")]);
    let plain = address_of(world.daemon.ready(), "plain_port");
    let mut client = SmtpClient::connect(plain).await;
    let refused = client.say(&format!("MAIL FROM:<{FROM}>")).await;
    assert_eq!(refused, "530 5.7.0 No credential is bound to your IP address");
    let made = world.admin(&["key", "create", "--server", "dev", "--address", "127.0.0.1"]);
    assert_eq!((&made["scope"], &made["allow"]), (&json!("address"), &json!(["127.0.0.1/32"])));
    assert_eq!(
        (made.get("api_key"), made.get("api_secret")),
        (None, None),
        "there is nothing to keep secret"
    );
    assert!(client.deliver(FROM, &TO, &text("")).await.starts_with(QUEUED));
    let mut client = SmtpClient::connect_starttls(starttls_address(&world)).await;
    assert_eq!(client.say(&format!("MAIL FROM:<{FROM}>")).await, "530 5.7.0 Authentication required");
    let (is_done, _, output_text) = world.admin_output(&["key", "rotate", &made["id"].to_string()]);
    assert!(!is_done && output_text.contains("no secret to rotate"), "{output_text}");
    let (is_done, _, output_text) =
        world.admin_output(&["key", "create", "--server", "dev", "--scope", "address"]);
    assert!(!is_done && output_text.contains("use full, send or read"), "{output_text}");
}

#[tokio::test]
async fn serve_uses_the_operators_certificate_on_all_listeners() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let pair = TestCertificate::for_localhost();
    std::fs::write(path("cert.pem"), pair.certificate_pem).unwrap();
    std::fs::write(path("key.pem"), pair.key_pem).unwrap();
    let config = |tls: &str| {
        format!(
            "data_dir = {:?}\n[http]\nlisten = \"127.0.0.1:0\"\n{tls}[smtp]\nstarttls_listen = \"127.0.0.1:0\"\n\
             tls_listen = \"127.0.0.1:0\"\nextra_listen = \"127.0.0.1:0\"\n",
            path("data")
        )
    };
    let tls = format!("[tls]\ncertificate = {:?}\nkey = {:?}\n", path("cert.pem"), path("key.pem"));
    std::fs::write(path("postroad.toml"), config(&tls)).unwrap();
    let daemon = Daemon::start(program(), ["serve", "--json", "--config", &path("postroad.toml")], &[]);
    let address =
        |name: &str| -> SocketAddr { daemon.ready()["smtp"][name].as_str().unwrap().parse().unwrap() };
    for name in ["starttls", "extra"] {
        let mut client = SmtpClient::connect_starttls(address(name)).await;
        assert!(client.say(&auth_plain("no", "body")).await.starts_with("535 "));
    }
    SmtpClient::connect_tls(address("tls")).await;
    assert_eq!(daemon.ready()["smtp"]["plain"], Value::Null);
    drop(daemon);

    std::fs::write(path("postroad.toml"), config("")).unwrap();
    let output = postroad_testkit::daemon::command(program(), &[])
        .args(["check-config", "--config", &path("postroad.toml")])
        .output()
        .unwrap();
    let output_text =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success());
    for key in ["smtp.starttls_listen", "smtp.tls_listen", "smtp.extra_listen", "tls.certificate"] {
        assert!(output_text.contains(key), "{output_text}");
    }
}

#[tokio::test]
async fn dev_takes_its_ports_from_the_command_line_or_the_environment() {
    let world = World::start_with(Engine::Sqlite, &[("POSTROAD_SMTP_EXTRA_LISTEN", "127.0.0.1:0")]);
    let ready = world.daemon.ready();
    assert_eq!(ready["smtp"]["host"], "127.0.0.1");
    SmtpClient::connect_starttls(address_of(ready, "extra_port")).await;
    let port_in_use = starttls_address(&world).port().to_string();
    let data_dir = world.folder.path().join("other");
    let output = postroad_testkit::daemon::command(program(), &[])
        .args(["dev", "--json", "--http-port", "0", "--smtp-port", &port_in_use, "--data-dir"])
        .arg(data_dir)
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(output_text.contains(&port_in_use) && output_text.contains("--smtp-port 0"), "{output_text}");
}
