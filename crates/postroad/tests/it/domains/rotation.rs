//! New DKIM keys: generated here or imported.

use std::sync::atomic::{AtomicBool, Ordering};

use mail_auth::hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use mail_auth::{AuthenticatedMessage, DkimResult, MessageAuthenticator};
use postroad_testkit::{DnsServer, dkim_verifier};
use serde_json::{Value, json};

use super::{dkim_records, publish, start, verdicts};
use crate::world::{Engine, both_engines};

fn states(domain: &Value) -> Vec<&str> {
    domain["dkim"].as_array().unwrap().iter().map(|key| key["state"].as_str().unwrap()).collect()
}

fn selectors(domain: &Value) -> Vec<String> {
    let keys = domain["dkim"].as_array().unwrap();
    keys.iter().map(|key| key["selector"].as_str().unwrap().to_owned()).collect()
}

/// Whether mail-auth accepts each signature of each message, with the current records of the DNS.
async fn receiver_verdicts(dns: &DnsServer, messages: &[impl AsRef<[u8]>]) -> Vec<Vec<bool>> {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut connections {
        connection.port = dns.address().port();
    }
    let server = NameServerConfig::new(dns.address().ip(), true, connections);
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    let receiver =
        MessageAuthenticator::new(config, ResolverOpts::default()).expect("a name server is given");
    let mut all = Vec::new();
    for message in messages {
        let message = AuthenticatedMessage::parse(message.as_ref()).expect("the message has headers");
        let outputs = receiver.verify_dkim(&message).await;
        all.push(outputs.iter().map(|output| *output.result() == DkimResult::Pass).collect());
    }
    all
}

both_engines!(
    every_message_verifies_while_the_key_is_rotated_under_load,
    rotation_adds_a_second_signature,
    a_key_and_a_selector_can_be_imported
);

async fn every_message_verifies_while_the_key_is_rotated_under_load(engine: Engine) {
    let (world, dns) = start(engine);
    let name = json!({"name": "shop.example"});
    publish(&dns, &world.domains("create", &name).await);
    world.until_domain("shop.example", |domain| domain["verified"] == true).await;
    let is_rotated = AtomicBool::new(false);
    let (world, is_rotated) = (&world, &is_rotated);
    // Two senders do not pause while the new record is published and found, and for a while after.
    let load = async |sender: usize| {
        let mut messages = Vec::new();
        let mut remaining = 20;
        while remaining > 0 {
            let to = format!("r{}-{sender}@example.net", messages.len());
            messages.push(world.send_from("hello@shop.example", &to).await.0);
            remaining -= usize::from(is_rotated.load(Ordering::Acquire));
        }
        messages
    };
    let rotation = async {
        let rotated = world.domains("rotate_dkim", &name).await;
        assert_eq!((states(&rotated), &rotated["verified"]), (vec!["active", "pending"], &json!(true)));
        publish(&dns, &rotated);
        let rotated =
            world.until_domain("shop.example", |domain| states(domain) == ["retiring", "active"]).await;
        is_rotated.store(true, Ordering::Release);
        rotated
    };
    let (rotated, one, other) = tokio::join!(rotation, load(1), load(2));
    let messages = [one, other].concat();
    let selectors = selectors(&rotated);
    let signed_by = |message: &[u8]| {
        let text = String::from_utf8_lossy(message);
        selectors
            .iter()
            .position(|selector| text.contains(&format!("s={selector};")))
            .expect("one of its keys signs")
    };
    let by_new = messages.iter().filter(|message| signed_by(message) == 1).count();
    assert!(by_new > 0 && by_new < messages.len(), "{by_new} of {}", messages.len());
    // Verified by python3-dkim with the records that the API shows, and by mail-auth with the records in the DNS.
    let good = vec![vec![true]; messages.len()];
    assert_eq!(dkim_verifier::verify_all(&messages, &dkim_records(&rotated)), good);
    assert_eq!(receiver_verdicts(&dns, &messages).await, good);
    // The delivery record names the key that signed.
    let mut query = json!({"to": "r0-1@example.net"});
    let id = loop {
        let listed = world.call("/api/v1/messages/search", &query).await;
        if let Some(id) = listed["data"]["items"][0]["id"].as_i64() {
            break id;
        }
        // On a busy machine, the time limit of a search may end a page before the message is found.
        query["cursor"] = listed["flags"]["pagination"]["next_cursor"].clone();
        assert!(query["cursor"].is_string(), "{listed}");
    };
    let dkim = world.deliveries(id).await[0]["dkim"].clone();
    assert_eq!(dkim, json!([format!("{}._domainkey.shop.example", selectors[0])]));
}

// Receivers that do not know Ed25519 verify the RSA signature.
async fn rotation_adds_a_second_signature(engine: Engine) {
    let (world, dns) = start(engine);
    let name = json!({"name": "shop.example"});
    publish(&dns, &world.domains("create", &name).await);
    world.until_domain("shop.example", |domain| domain["verified"] == true).await;
    let second = json!({"name": "shop.example", "algorithm": "ed25519", "selector": "second"});
    let rotated = world.domains("rotate_dkim", &second).await;
    let kinds = |domain: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let keys = domain["dkim"].as_array().unwrap();
        keys.iter().map(|key| (text(&key["algorithm"]), text(&key["state"]))).collect()
    };
    let key = |kind: &str, state: &str| (kind.to_owned(), state.to_owned());
    assert_eq!(kinds(&rotated), [key("rsa", "active"), key("ed25519", "pending")]);
    let (message, _) = world.send_from("hello@shop.example", "early@example.net").await;
    assert_eq!(verdicts(&message, &rotated), [true], "it does not sign before its record is found");
    publish(&dns, &rotated);
    let both = [key("rsa", "active"), key("ed25519", "active")];
    let active = world.until_domain("shop.example", |domain| kinds(domain) == both).await;
    let (message, _) = world.send_from("hello@shop.example", "late@example.net").await;
    let text = String::from_utf8_lossy(&message).into_owned();
    assert!(text.contains("a=rsa-sha256;") && text.contains("a=ed25519-sha256;"), "{text}");
    assert_eq!(receiver_verdicts(&dns, &[message]).await, [vec![true, true]]);
    // The next Ed25519 key is pending in the same way; the RSA key stays.
    let again = world.domains("rotate_dkim", &json!({"name": "shop.example", "algorithm": "ed25519"})).await;
    assert_eq!(kinds(&again), [both[0].clone(), both[1].clone(), key("ed25519", "pending")]);
    assert_eq!(selectors(&again)[..2], selectors(&active)[..]);
    for (wrong, pointer) in [
        (json!({"name": "shop.example", "algorithm": "dsa"}), "/algorithm"),
        (
            json!({"name": "shop.example", "algorithm": "ed25519", "private_key": include_str!("own_key.pem")}),
            "/algorithm",
        ),
    ] {
        let answer = world.call("/api/v1/domains/rotate_dkim", &wrong).await;
        assert_eq!(answer["data"]["errors"][0]["pointer"], pointer, "{answer}");
    }
}

async fn a_key_and_a_selector_can_be_imported(engine: Engine) {
    let (world, dns) = start(engine);
    let own = include_str!("own_key.pem");
    let import =
        |key: &str, selector: &str| json!({"name": "old.example", "private_key": key, "selector": selector});
    let created = world.domains("create", &import(own, "postal-Ab12")).await;
    assert_eq!(selectors(&created), ["postal-ab12"]);
    assert_eq!(created["records"][1]["name"], "postal-ab12._domainkey.old.example");
    publish(&dns, &created);
    let verified = world.until_domain("old.example", |domain| domain["verified"] == true).await;
    let (message, _) = world.send_from("hello@old.example", "bob@example.net").await;
    assert_eq!(verdicts(&message, &verified), [true]);
    for (key, selector, pointer) in [
        ("no key", "good", "/private_key"),
        (own, "not a selector", "/selector"),
        (own, "postal-ab12", "/selector"),
    ] {
        let answer = world.call("/api/v1/domains/rotate_dkim", &import(key, selector)).await;
        assert_eq!(answer["data"]["errors"][0]["pointer"], pointer, "{answer}");
    }
    let shown = serde_json::to_string(&verified).unwrap();
    assert!(!shown.contains("PRIVATE") && !world.daemon.stderr_text().contains("PRIVATE KEY"));
    // Postal makes keys of 1024 bits.
    let short = json!({"name": "moved.example", "private_key": include_str!("own_key_1024.pem"), "selector": "postal-x1"});
    publish(&dns, &world.domains("create", &short).await);
    let verified = world.until_domain("moved.example", |domain| domain["verified"] == true).await;
    let hint = verified["records"][1]["hint"].as_str().unwrap();
    assert!(hint.starts_with("The key has less than 2048 bits"), "{hint}");
    let (message, _) = world.send_from("hello@moved.example", "ann@example.net").await;
    assert_eq!(verdicts(&message, &verified), [true]);
}
