//! Queue commands and sending limits: retry, release, rate, hourly limit.

use std::time::Duration;

use postroad_testkit::smtp_peer::{Answer, Script, Stage};
use serde_json::{Value, json};

use super::limits::{most_in_a_window, send_many};
use super::outcomes::numbered_kinds;
use super::outside::{Outside, to};
use crate::world::{Engine, both_engines};

both_engines!(
    queue_retry_sends_a_message_before_its_next_attempt_is_due,
    mail_beyond_the_hourly_limit_is_held_and_can_be_released
);

async fn queue_retry_sends_a_message_before_its_next_attempt_is_due(engine: Engine) {
    let outside = Outside::new();
    let deferral = Answer::reply("451 4.3.0 Not now");
    let peer = outside.site("later.example", Script::new().first(1, Stage::Message, deferral));
    let world = outside.start(engine, &[("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1h")]);
    let id = world.accepted_id(&to("ann@later.example")).await;
    world.until_status(id, "SoftFail").await;
    let shown = world.queue(&["show", &id.to_string()]);
    let why = shown["why"].as_str().unwrap();
    assert!(why.starts_with("It waits because its next attempt is at "), "{why}");
    assert_eq!(world.queue(&["retry", &id.to_string()])[0]["result"], "due now");
    let deliveries = world.until_status(id, "Sent").await;
    assert_eq!((deliveries.len(), peer.messages().len()), (2, 2));
}

async fn mail_beyond_the_hourly_limit_is_held_and_can_be_released(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let mut world = outside.start(engine, &[]);
    world.admin(&["server", "set-hourly-limit", "dev", "2"]);
    let mut ids = Vec::new();
    for name in ["ann", "bob", "cid"] {
        ids.push(world.accepted_id(&to(&format!("{name}@shop.example"))).await);
    }
    for id in &ids[..2] {
        world.until_status(*id, "Sent").await;
    }
    let deliveries = world.until_status(ids[2], "Held").await;
    let details = deliveries[0]["details"].as_str().unwrap();
    assert!(details.contains("limit"), "{details}");
    assert_eq!(peer.messages().len(), 2);
    assert_eq!(world.queue(&["retry", &ids[2].to_string()])[0]["result"], "released");
    world.until_status(ids[2], "Sent").await;
    let events = world.events_at_the_end(ids[2]).await;
    let expected =
        [(1, "message.accepted"), (2, "message.held"), (3, "message.released"), (4, "message.delivered")];
    assert_eq!(numbered_kinds(&events), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_servers_rate_paces_its_mail_and_refuses_nothing() {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    let other = outside.site("other.example", Script::new());
    let world = outside.start(Engine::Sqlite, &[]);
    world.admin(&["server", "set-rate", "dev", "10/s"]);
    world.apply_changes();
    send_many(&world, &world.key, "shop.example", 15).await;
    send_many(&world, &world.key, "other.example", 15).await;
    peer.wait_until(|record| record.messages.len() == 15).await;
    other.wait_until(|record| record.messages.len() == 15).await;
    // The rate applies to all destinations of the server together.
    let mut messages = [peer.messages(), other.messages()].concat();
    messages.sort_by_key(|message| message.begun_at);
    let peak = most_in_a_window(&messages, Duration::from_secs(1));
    assert!(peak <= 11, "{peak} in a second");
    let took = messages[29].begun_at - messages[0].begun_at;
    assert!((Duration::from_millis(2_800)..Duration::from_secs(10)).contains(&took), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retry_and_cancel_report_unknown_messages() {
    let outside = Outside::new();
    let world = outside.start(Engine::Sqlite, &[]);
    for command in ["retry", "cancel"] {
        let (out, err) = world.refused_queue(&[command, "12345"]);
        let results: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(results, json!([{"id": 12345, "result": "unknown", "done": false}]));
        assert!(err.contains("1 of 1 messages were left as they are"), "{err}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspending_a_pool_that_does_not_exist_fails_and_names_those_that_do() {
    let outside = Outside::new();
    let world = outside.start(Engine::Sqlite, &[]);
    let (_, err) = world.refused_queue(&["suspend", "pool:nope", "--reason", "a typing mistake"]);
    assert!(err.contains("there is no pool `nope`; the pools are: default"), "{err}");
    world.admin(&["pool", "create", "bulk"]);
    world.admin(&["pool", "create", "news"]);
    let (_, err) = world.refused_queue(&["suspend", "lane:nope/example.com", "--reason", "a typing mistake"]);
    assert!(err.contains("the pools are: bulk, news"), "{err}");
    world.queue(&["suspend", "pool:bulk", "--reason", "meant"]);
    assert_eq!(world.queue(&["stats"])["gates"].as_array().map(Vec::len), Some(1));
}
