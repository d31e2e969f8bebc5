//! `postroad dev` by default: mail arrives in the inbox at once, as a receiver would get it.

use std::time::{Duration, Instant};

use postroad_testkit::dkim_verifier;
use serde_json::{Value, json};

use crate::world::{Engine, World, both_engines, good_but};

/// Waits until the inbox has a message to the address; returns it.
pub(crate) async fn wait_for_mail_to(world: &World, address: &str) -> Value {
    let path = format!("/dev/messages/wait?to={address}&timeout=20");
    let reply = world.client.get(&path).await.expect("the service answers");
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

both_engines!(a_message_is_in_the_inbox_within_a_second);

async fn a_message_is_in_the_inbox_within_a_second(world: World) {
    let mut times = Vec::new();
    for number in 0..5 {
        let address = format!("ann-{number}@example.net");
        let id = world.accepted_id(&good_but(json!({"to": [address]}))).await;
        let start = Instant::now();
        let caught = wait_for_mail_to(&world, &address).await;
        times.push(start.elapsed());
        assert_eq!((&caught["rcpt_to"], &caught["subject"]), (&json!([address]), &json!("Your order")));
        let deliveries = world.until_status(id, "Sent").await;
        assert_eq!(deliveries.len(), 1);
        assert_eq!(deliveries[0]["mx"], "inbox.localhost");
    }
    // Only the fastest of the five counts, because other work of the machine may delay the rest.
    assert!(times.iter().min().unwrap() < &Duration::from_secs(1), "{times:?}");
}

/// The TXT records that `admin domain records` asks a domain's owner to publish for DKIM.
pub(crate) fn dkim_records(shown: &Value) -> Vec<(String, String)> {
    let text = |record: &Value, key: &str| record[key].as_str().expect("a text").to_owned();
    let records = shown["records"].as_array().expect("a list").iter();
    let records = records.filter(|record| record["purpose"] == "dkim");
    records.map(|record| (text(record, "name"), text(record, "value"))).collect()
}

/// Sends a message; returns the bytes that arrived at the address.
async fn signed_bytes(world: &World, address: &str, body: &Value) -> Vec<u8> {
    world.accepted(body).await;
    let caught = wait_for_mail_to(world, address).await;
    let path = format!("/dev/messages/{}/raw", caught["id"]);
    world.client.get(&path).await.expect("the service answers").body.to_vec()
}

fn verdicts(message: &[u8], records: &[(String, String)]) -> Vec<bool> {
    let records: Vec<(&str, &str)> = records.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    dkim_verifier::verify(message, &records)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_verify_with_an_independent_verifier() {
    let world = World::start(Engine::Sqlite);
    let records = dkim_records(&world.admin(&["domain", "records", "example.test"]));
    assert_eq!(records.len(), 1);
    let html = format!("<p>Grüße und ein langer Satz: {}</p>", "wort ".repeat(300));
    let bodies = [
        json!({"subject": "Plain", "to": ["a@example.net"]}),
        json!({"subject": "Ünïcode 😀 subject that is long enough to be folded over more than one line of it",
               "to": ["Bob Söder <b@example.net>"], "html_body": html, "plain_body": "."}),
        json!({"subject": "", "to": ["c@example.net"], "plain_body": "trailing space \n\n\n",
               "attachments": [{"name": "a.txt", "content_type": "text/plain", "data": "aGFsbG8="}]}),
    ];
    for (address, fields) in ["a@example.net", "b@example.net", "c@example.net"].iter().zip(bodies) {
        let message = signed_bytes(&world, address, &good_but(fields)).await;
        let text = String::from_utf8_lossy(&message).into_owned();
        assert_eq!(verdicts(&message, &records), [true], "{text}");
        let forged = text.replace("From: Shop", "From: Shopp");
        assert_eq!(verdicts(forged.as_bytes(), &records), [false], "a changed message must not pass");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rsa_and_ed25519_signatures_verify() {
    let world = World::start_with(Engine::Sqlite, &[("POSTROAD_DELIVERY_DKIM_ED25519", "true")]);
    world.admin(&["domain", "create", "two-keys.test", "--server", "dev"]);
    world.admin(&["domain", "set-verified", "two-keys.test", "--server", "dev"]);
    let records = dkim_records(&world.admin(&["domain", "records", "two-keys.test"]));
    assert_eq!(records.len(), 2, "{records:?}");
    let body = good_but(json!({"from": "shop@two-keys.test", "to": ["ann@example.net"]}));
    let message = signed_bytes(&world, "ann@example.net", &body).await;
    assert_eq!(verdicts(&message, &records), [true, true], "{}", String::from_utf8_lossy(&message));
}
