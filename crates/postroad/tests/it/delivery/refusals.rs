//! Refusals that do not concern the message, hosts whose TLS is broken, and hosts with few or many extensions.

use postroad_testkit::smtp_peer::{Answer, PeerTls, Script, Stage, Transfer};
use serde_json::{Value, json};

use super::outcomes::{assert_pause, numbered_kinds};
use super::outside::{Outside, to};
use crate::world::{Engine, good_but};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_because_of_reputation_is_temporary() {
    let outside = Outside::new();
    let refusal = Answer::reply("550 5.7.1 Mail from your network is blocked for now");
    let peer = outside.site("strict.example", Script::new().first(2, Stage::MailFrom, refusal));
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@strict.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 3, "{deliveries:#?}");
    for refused in &deliveries[..2] {
        assert_eq!(refused["status"], "SoftFail");
        assert_eq!(refused["code"], 550);
        let class = refused["bounce_class"].as_str().unwrap();
        assert!(["spam_block", "reputation", "policy"].contains(&class), "{class}");
        assert_pause(refused, 0.3);
    }
    assert_eq!(peer.messages().len(), 1);
    let again = world.accepted_id(&to("ann@strict.example")).await;
    world.until_status(again, "Sent").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_421_at_the_banner_fails_no_message() {
    let outside = Outside::new();
    let goodbye = Answer::reply("421 4.3.2 Too busy, come back later").then_close();
    let peer = outside.site("busy.example", Script::new().first(2, Stage::Banner, goodbye));
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@busy.example")).await;
    // The message was never offered to the host while it was too busy, so there is one delivery.
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
    assert_eq!(deliveries[0]["remote_ip"], peer.address().ip().to_string());
}

/// The host replies "too many messages" on a new connection. That counts as an attempt, so that we do not reconnect
/// endlessly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_a_new_connection_is_used_up_counts_as_an_attempt() {
    let outside = Outside::new();
    let goodbye = Answer::reply("421 4.7.0 Too many messages per connection").then_close();
    let peer = outside.site("stubborn.example", Script::new().first(2, Stage::MailFrom, goodbye));
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@stubborn.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    let codes: Vec<_> = deliveries.iter().map(|delivery| delivery["code"].clone()).collect();
    assert_eq!(codes, [json!(421), json!(421), json!(250)]);
    assert_eq!(peer.connections().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_421_in_the_middle_of_a_transaction_is_retried_on_a_new_connection() {
    let outside = Outside::new();
    let goodbye = || Answer::reply("421 4.3.0 Shutting down").then_close();
    let script = Script::new().first(1, Stage::RcptTo, goodbye()).first(1, Stage::Message, goodbye());
    let peer = outside.site("restarting.example", script);
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@restarting.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    let statuses: Vec<_> = deliveries.iter().map(|d| (d["status"].clone(), d["code"].clone())).collect();
    let deferred = || (json!("SoftFail"), json!(421));
    assert_eq!(statuses, [deferred(), deferred(), (json!("Sent"), json!(250))]);
    assert!(deliveries.iter().all(|delivery| delivery["possible_duplicate"] == false));
    assert_eq!(peer.connections().len(), 3);
}

/// The host closes the connection with a 421 at the second message. That is no attempt, and the message does not wait
/// for a retry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_421_between_messages_costs_no_attempt() {
    let outside = Outside::new();
    let script = Script::new().when(|context| {
        let is_second = context.stage == Stage::MailFrom && context.connection == 1 && context.message == 2;
        is_second.then(|| Answer::reply("421 4.4.2 One message is enough").then_close())
    });
    let peer = outside.site("single.example", script);
    let envs = [("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h"), ("POSTROAD_DELIVERY_IDLE_TIMEOUT", "20s")];
    let world = outside.start(Engine::Sqlite, &envs);
    let first = world.accepted_id(&to("ann@single.example")).await;
    world.until_status(first, "Sent").await;
    let second = world.accepted_id(&to("bob@single.example")).await;
    let deliveries = world.until_status(second, "Sent").await;
    assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
    let begun: Vec<u32> = peer.connections().iter().map(|connection| connection.messages_begun).collect();
    assert_eq!(begun, [2, 1], "{:#?}", peer.connections());
}

/// Handshakes that fail: garbage, a closed connection, no answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_tls_falls_back_to_plain_text() {
    let outside = Outside::new();
    let envs = [("POSTROAD_DELIVERY_REPLY_TIMEOUT", "1s"), ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")];
    let broken = [
        ("garbage.example", PeerTls::Garbage),
        ("hangs-up.example", PeerTls::HangUp),
        ("stalls.example", PeerTls::Stall),
    ];
    let peers = broken.map(|(domain, tls)| (domain, outside.site(domain, Script::new().with_tls(tls))));
    let world = outside.start(Engine::Sqlite, &envs);
    let mut ids = Vec::new();
    for (domain, _) in &peers {
        ids.push(world.accepted_id(&to(&format!("ann@{domain}"))).await);
    }
    for ((_, peer), id) in peers.iter().zip(ids) {
        let deliveries = world.until_status(id, "Sent").await;
        assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
        assert_eq!(deliveries[0]["sent_with_ssl"], false);
        assert_eq!(deliveries[0]["tls"], Value::Null);
        let details = deliveries[0]["details"].as_str().unwrap();
        assert!(details.contains(" without TLS, which failed: mx."), "{details}");
        let connections = peer.connections();
        assert!(connections[0].commands.contains(&"STARTTLS".to_owned()), "{connections:#?}");
        assert!(!connections[1].commands.contains(&"STARTTLS".to_owned()), "{connections:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_refuses_starttls_gets_its_mail_in_plain_text() {
    let outside = Outside::new();
    let refusal = Answer::reply("454 4.7.0 TLS not available");
    let script = Script::new().with_tls(PeerTls::Garbage).on(Stage::StartTls, refusal);
    let peer = outside.site("shop.example", script);
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@shop.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!((deliveries.len(), &deliveries[0]["tls"]), (1, &Value::Null), "{deliveries:#?}");
    let details = deliveries[0]["details"].as_str().unwrap();
    assert!(details.contains("mx.shop.example offers STARTTLS and refused it"), "{details}");
    assert_eq!(peer.connections().len(), 1, "the same connection goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusal_after_broken_tls_names_why_tls_was_not_used() {
    let outside = Outside::new();
    let script = Script::new().with_tls(PeerTls::Garbage);
    let _peer =
        outside.site("garbage.example", script.on(Stage::RcptTo, Answer::reply("550 5.1.1 No such user")));
    let world = outside.start(Engine::Sqlite, &[("POSTROAD_DELIVERY_REPLY_TIMEOUT", "1s")]);
    let id = world.accepted_id(&to("ann@garbage.example")).await;
    let deliveries = world.until_status(id, "HardFail").await;
    assert_eq!((deliveries.len(), &deliveries[0]["tls"]), (1, &Value::Null), "{deliveries:#?}");
    let details = deliveries[0]["details"].as_str().unwrap();
    assert!(details.contains("; without TLS, which failed: mx.garbage.example"), "{details}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_knows_only_helo_gets_its_mail() {
    let outside = Outside::new();
    let script = Script::new().on(Stage::Ehlo, Answer::reply("502 5.5.1 What is EHLO?"));
    let peer = outside.site("old.example", script);
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@old.example")).await;
    world.until_status(id, "Sent").await;
    let messages = peer.messages();
    assert_eq!((messages.len(), &messages[0].transfer), (1, &Transfer::Data));
    assert_eq!(messages[0].mail_parameters, "");
    let connection = &peer.connections()[0];
    assert!(connection.commands[1].starts_with("HELO "), "{:?}", connection.commands);
    assert!(connection.violations.is_empty(), "{:?}", connection.violations);
}

/// Offered extensions are used: the whole transaction pipelined, with BDAT, and TLS with any certificate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_modern_host_gets_its_mail_pipelined_inside_tls() {
    let outside = Outside::new();
    let certificate = postroad_testkit::TestCertificate::self_signed(&["someone-else.example"]);
    let script = Script::new()
        .offering(&["PIPELINING", "CHUNKING", "SIZE 1000000", "8BITMIME", "ENHANCEDSTATUSCODES"])
        .with_tls(PeerTls::With(certificate));
    let peer = outside.site("modern.example", script);
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@modern.example")).await;
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries[0]["sent_with_ssl"], true);
    assert!(deliveries[0]["tls"].as_str().is_some_and(|tls| tls.starts_with("TLSv1.3")), "{deliveries:#?}");
    let message = &peer.messages()[0];
    assert!(message.is_encrypted);
    assert_eq!(message.transfer, Transfer::Chunks(vec![message.bytes.len()]));
    let size = format!("SIZE={}", message.bytes.len());
    assert!(message.mail_parameters.contains(&size), "{} in {}", size, message.mail_parameters);
    assert!(peer.connections()[0].violations.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_too_large_for_the_peer_fails_before_it_is_sent() {
    let outside = Outside::new();
    let peer = outside.site("small.example", Script::new().offering(&["SIZE 500"]));
    let mut world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&to("ann@small.example")).await;
    let deliveries = world.until_status(id, "HardFail").await;
    assert_eq!(deliveries.len(), 1);
    assert_eq!(deliveries[0]["bounce_class"], "too_large");
    assert!(deliveries[0]["details"].as_str().unwrap().ends_with("mx.small.example takes at most 500"));
    assert!(!peer.connections()[0].commands.iter().any(|line| line.starts_with("MAIL")));
    let events = world.events_at_the_end(id).await;
    assert_eq!(numbered_kinds(&events), [(1, "message.accepted"), (2, "message.failed")]);
    let data: Value = serde_json::from_str(&events[1].data).unwrap();
    assert_eq!(data["class"], "too_large");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_beyond_ascii_needs_smtputf8() {
    let outside = Outside::new();
    let old = outside.site("ascii.example", Script::new().offering(&["8BITMIME"]));
    let new = outside.site("world.example", Script::new().offering(&["8BITMIME", "SMTPUTF8"]));
    let world = outside.start(Engine::Sqlite, &[]);
    let refused = world.accepted_id(&good_but(json!({"to": ["jörg@ascii.example"]}))).await;
    let taken = world.accepted_id(&good_but(json!({"to": ["jörg@world.example"]}))).await;
    let deliveries = world.until_status(refused, "HardFail").await;
    let details = deliveries[0]["details"].as_str().unwrap();
    assert_eq!(details, "The message needs SMTPUTF8, which mx.ascii.example does not offer");
    assert!(old.messages().is_empty());
    world.until_status(taken, "Sent").await;
    let message = &new.messages()[0];
    assert_eq!(message.rcpt_to, ["jörg@world.example"]);
    assert!(message.mail_parameters.contains("SMTPUTF8"), "{}", message.mail_parameters);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_mail_server_that_offers_smtputf8_is_tried() {
    let outside = Outside::new();
    outside.dns.mx("shop.example", 10, "first.shop.example").mx("shop.example", 20, "second.shop.example");
    let first = outside.host("first.shop.example", Script::new().offering(&["8BITMIME"]));
    let second = outside.host("second.shop.example", Script::new().offering(&["8BITMIME", "SMTPUTF8"]));
    outside.dns.mx("old.example", 10, "one.old.example").mx("old.example", 20, "two.old.example");
    let one = outside.host("one.old.example", Script::new().offering(&["8BITMIME"]));
    let two = outside.host("two.old.example", Script::new().offering(&["8BITMIME"]));
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&good_but(json!({"to": ["jörg@shop.example"]}))).await;
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!(deliveries.len(), 1, "the next host is no next attempt: {deliveries:#?}");
    assert_eq!(deliveries[0]["mx"], "second.shop.example");
    assert!(first.messages().is_empty());
    assert!(second.messages()[0].mail_parameters.contains("SMTPUTF8"));
    let plain = world.accepted_id(&good_but(json!({"to": ["ann@shop.example"]}))).await;
    world.until_status(plain, "Sent").await;
    let refused = world.accepted_id(&good_but(json!({"to": ["jörg@old.example"]}))).await;
    let deliveries = world.until_status(refused, "HardFail").await;
    let details = deliveries[0]["details"].as_str().unwrap();
    assert_eq!(details, "The message needs SMTPUTF8, which one.old.example does not offer");
    assert_eq!((one.connections().len(), two.connections().len()), (1, 1));
}

/// An attempt tries at most eight further hosts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_attempt_looks_for_smtputf8_at_the_hosts_that_are_left() {
    let outside = Outside::new();
    let hosts: Vec<_> = (1..=10)
        .map(|number| {
            let name = format!("mx{number}.shop.example");
            outside.dns.mx("shop.example", 10 * number, &name);
            let extensions: &[&str] = if number == 10 { &["8BITMIME", "SMTPUTF8"] } else { &["8BITMIME"] };
            outside.host(&name, Script::new().offering(extensions))
        })
        .collect();
    let world = outside.start(Engine::Sqlite, &[]);
    let id = world.accepted_id(&good_but(json!({"to": ["jörg@shop.example"]}))).await;
    let deliveries = world.until_status(id, "Sent").await;
    let found: Vec<&Value> = deliveries.iter().map(|delivery| &delivery["status"]).collect();
    assert_eq!(found, ["SoftFail", "Sent"], "{deliveries:#?}");
    let details = deliveries[0]["details"].as_str().unwrap();
    assert!(details.contains("none of the hosts tried supports SMTPUTF8"), "{details}");
    assert_eq!(hosts[9].messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_beyond_ascii_need_no_smtputf8() {
    let outside = Outside::new();
    let peer = outside.site("ascii.example", Script::new().offering(&["8BITMIME"]));
    let world = outside.start(Engine::Sqlite, &[]);
    let message = "From: Zoë <shop@example.test>\r\nSubject: Grüße\r\n\r\nKörper\r\n";
    let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, message);
    let body = json!({"mail_from": "shop@example.test", "rcpt_to": ["ann@ascii.example"], "data": data});
    let answer = world.call(crate::world::RAW, &body).await;
    let id = answer["data"]["messages"]["ann@ascii.example"]["id"].as_i64().unwrap();
    world.until_status(id, "Sent").await;
    let bytes = String::from_utf8(peer.messages()[0].bytes.to_vec()).unwrap();
    let head = bytes.split_once("\r\n\r\n").unwrap().0;
    assert!(head.is_ascii() && head.contains("Subject: =?utf-8?B?R3LDvMOfZQ==?="), "{head}");
}

/// Only a reply to RCPT, or a later one with an unambiguous code, says something about the recipient.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_suppresses_only_in_a_phase_that_knows_the_recipient() {
    let cases = [
        ("a", Stage::MailFrom, "501 5.1.1 no such user", false),
        ("b", Stage::MailFrom, "501 5.1.3 bad address syntax", false),
        ("c", Stage::MailFrom, "550 5.1.2 no such domain", false),
        ("d", Stage::MailFrom, "550 user unknown", false),
        ("e", Stage::RcptTo, "550 user unknown", true),
        ("f", Stage::RcptTo, "550 5.1.1 no such user", true),
        ("g", Stage::Data, "550 user unknown", false),
        ("h", Stage::Message, "550 user unknown", false),
        ("i", Stage::Message, "550 5.1.1 no such user", true),
    ];
    let outside = Outside::new();
    // Also with pipelining: the reply to MAIL then comes after the end of the message was sent.
    let extensions: [&[&str]; 2] = [&[], &["PIPELINING", "CHUNKING"]];
    let mut peers = Vec::new();
    for (name, stage, reply, _) in cases {
        for (number, extensions) in extensions.into_iter().enumerate() {
            let script = Script::new().offering(extensions).on(stage, Answer::reply(reply));
            peers.push(outside.site(&format!("{name}{number}.example"), script));
        }
    }
    let world = outside.start(Engine::Sqlite, &[]);
    for (name, stage, reply, is_suppressed) in cases {
        for (number, offered) in extensions.into_iter().enumerate() {
            if stage == Stage::Data && number == 1 {
                // BDAT is used instead of DATA where it is offered.
                continue;
            }
            let address = format!("ann@{name}{number}.example");
            let id = world.accepted_id(&to(&address)).await;
            let deliveries = world.until_status(id, "HardFail").await;
            let class = &deliveries[0]["bounce_class"];
            let case = format!("{stage:?} {reply} {offered:?}: {deliveries:#?}");
            if stage == Stage::MailFrom {
                assert!(!["bad_mailbox", "bad_domain"].contains(&class.as_str().unwrap()), "{case}");
            }
            let again = world.accepted_id(&to(&address)).await;
            let wanted = if is_suppressed { "Held" } else { "HardFail" };
            let deliveries = world.until_deliveries(again, 1).await;
            assert_eq!(deliveries[0]["status"], wanted, "{case}");
        }
    }
}
