//! Peers that stop answering, at each stage of a session.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use postroad_testkit::smtp_peer::{Answer, PeerTls, Script, Stage};
use postroad_testkit::{SmtpPeer, eventually};
use serde_json::{Value, json};

use super::outcomes::assert_pause;
use super::outside::{Outside, to};
use crate::world::Engine;
use crate::world::{both_engines, good_but};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_peer_is_given_up_and_tried_again() {
    let outside = Outside::new();
    let stages = [
        (Stage::Banner, "banner"),
        (Stage::Ehlo, "ehlo"),
        (Stage::MailFrom, "mail_from"),
        (Stage::RcptTo, "rcpt_to"),
        (Stage::Data, "data"),
        (Stage::Message, "final"),
    ];
    let silent_once = |stage| Script::new().first(1, stage, Answer::stall());
    let sites = stages.map(|(stage, phase)| {
        let domain = format!("{}.example", phase.replace('_', "-"));
        (outside.site(&domain, silent_once(stage)), domain, phase)
    });
    let envs =
        [("POSTROAD_DELIVERY_REPLY_TIMEOUT", "700ms"), ("POSTROAD_DELIVERY_FINAL_REPLY_TIMEOUT", "700ms")];
    let world = outside.start(Engine::Sqlite, &envs);
    let mut ids = Vec::new();
    for (_, domain, _) in &sites {
        ids.push(world.accepted_id(&to(&format!("ann@{domain}"))).await);
    }
    for ((peer, domain, phase), id) in sites.iter().zip(ids) {
        let deliveries = world.until_status(id, "Sent").await;
        assert_eq!(deliveries.len(), 2, "{phase}: {deliveries:#?}");
        let first = &deliveries[0];
        assert_eq!(first["status"], "SoftFail");
        assert_eq!(first["bounce_class"], "timeout", "{first}");
        assert_eq!((&first["code"], &first["output"]), (&Value::Null, &"".into()));
        let details = first["details"].as_str().unwrap();
        assert!(details.ends_with(&format!("the server did not answer in time ({phase})")), "{details}");
        assert!(details.contains(&format!("mx.{domain}")), "{details}");
        assert!(first["time"].as_f64().is_some_and(|time| (0.7..5.0).contains(&time)), "{first}");
        assert_pause(first, 0.3);
        // The message may have arrived only if all of it was sent.
        assert_eq!(first["possible_duplicate"], *phase == "final", "{first}");
        assert_eq!(peer.messages().len(), if *phase == "final" { 2 } else { 1 });
        assert_eq!(peer.connections().len(), 2, "{phase}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_connections_are_scarce_a_silent_host_is_given_up_early_and_the_record_says_so() {
    let outside = Outside::new();
    let silent = outside.host("mx.silent.example", Script::new().on(Stage::Banner, Answer::stall()));
    let IpAddr::V4(address) = silent.address().ip() else { panic!("all peers are IPv4") };
    for n in 0..3 {
        outside.dns.mx(&format!("silent-{n}.example"), 10, &format!("mx-{n}.silent.example"));
        outside.dns.a(&format!("mx-{n}.silent.example"), address);
    }
    // A fifth of five connections: one for all silent hosts together.
    let envs = [
        ("POSTROAD_DELIVERY_CONNECTIONS", "5"),
        ("POSTROAD_DELIVERY_BUSY_GREETING_TIMEOUT", "1500ms"),
        ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h"),
    ];
    let world = outside.start(Engine::Sqlite, &envs);
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(world.accepted_id(&to(&format!("ann@silent-{n}.example"))).await);
    }
    // While the last host is tried, no other host waits for the connection, so this one gets the usual five minutes.
    let early = eventually(async || {
        let mut early = Vec::new();
        for id in &ids {
            early.extend(world.deliveries(*id).await.as_array().unwrap().clone());
        }
        if early.len() >= 2 { Ok(early) } else { Err(format!("{early:#?}")) }
    })
    .await;
    assert_eq!(early.len(), 2, "{early:#?}");
    for record in &early {
        assert_eq!((&record["status"], &record["bounce_class"]), (&"SoftFail".into(), &"timeout".into()));
        let details = record["details"].as_str().unwrap();
        let reason = "the server did not answer in time (banner); given up because connections are scarce: hosts then get 1.5 s instead of 300 s";
        assert!(details.ends_with(reason), "{details}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tls_handshake_that_is_given_up_early_is_not_followed_by_plain_text() {
    let outside = Outside::new();
    let slow = outside.host("mx.slow.example", Script::new().with_tls(PeerTls::Stall));
    let domains = publish_domains(&outside, &slow, "slow", 3);
    // A fifth of five connections: one for all hosts that do not answer in time.
    let envs = [
        ("POSTROAD_DELIVERY_CONNECTIONS", "5"),
        ("POSTROAD_DELIVERY_BUSY_GREETING_TIMEOUT", "1500ms"),
        ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h"),
    ];
    let world = outside.start(Engine::Sqlite, &envs);
    let mut ids = Vec::new();
    for domain in &domains {
        ids.push(world.accepted_id(&to(&format!("ann@{domain}"))).await);
    }
    let early = eventually(async || {
        let mut early = Vec::new();
        for id in &ids {
            early.extend(world.deliveries(*id).await.as_array().unwrap().clone());
        }
        if early.is_empty() { Err("no record yet".to_owned()) } else { Ok(early) }
    })
    .await;
    for record in &early {
        assert_eq!((&record["status"], &record["bounce_class"]), (&"SoftFail".into(), &"timeout".into()));
        let details = record["details"].as_str().unwrap();
        assert!(details.contains("; given up because connections are scarce: "), "{details}");
    }
    assert!(slow.messages().is_empty(), "nothing goes in plain text");
}

/// Publishes `count` domains with separate sites, all at this peer.
fn publish_domains(outside: &Outside, peer: &SmtpPeer, kind: &str, count: usize) -> Vec<String> {
    let IpAddr::V4(address) = peer.address().ip() else { panic!("all peers are IPv4") };
    let domain = |number: usize| {
        let domain = format!("{kind}-{number}.example");
        let host = format!("mx.{domain}");
        outside.dns.mx(&domain, 10, &host).a(&host, address);
        domain
    };
    (0..count).map(domain).collect()
}

both_engines!(hosts_that_hang_in_the_middle_of_a_message_hold_up_no_healthy_mail);

async fn hosts_that_hang_in_the_middle_of_a_message_hold_up_no_healthy_mail(engine: Engine) {
    let outside = Outside::new();
    let hanging = |name: &str, stage| outside.host(name, Script::new().on(stage, Answer::stall()));
    let at_recipient = hanging("mx.rcpt.example", Stage::RcptTo);
    let at_data = hanging("mx.data.example", Stage::Data);
    let at_end = hanging("mx.end.example", Stage::Message);
    let healthy = outside.host("mx.healthy.example", Script::new());
    let mut hanging = publish_domains(&outside, &at_recipient, "rcpt", 40);
    hanging.extend(publish_domains(&outside, &at_data, "data", 40));
    hanging.extend(publish_domains(&outside, &at_end, "end", 20));
    let new = publish_domains(&outside, &healthy, "new", 20);
    let envs = [("POSTROAD_DELIVERY_CONNECTIONS", "40"), ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")];
    let world = outside.start(engine, &envs);
    let to_all = |domains: &[String]| {
        let addresses: Vec<String> = domains.iter().map(|domain| format!("ann@{domain}")).collect();
        good_but(json!({ "to": addresses }))
    };
    for domains in hanging.chunks(50) {
        world.accepted(&to_all(domains)).await;
    }
    at_recipient.wait_until(|record| record.connections.len() >= 5).await;
    let begun = Instant::now();
    world.accepted(&to_all(&new)).await;
    // A hanging host gets minutes to reply to RCPT, DATA or the end of a message: mail that waits for it is late.
    healthy.wait_until(|record| record.messages.len() >= new.len()).await;
    eprintln!("{engine:?}: all healthy mail after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
}
