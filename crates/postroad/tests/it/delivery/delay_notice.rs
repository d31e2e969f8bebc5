//! Messages that wait long without being offered to a receiver: they are reported as delayed, without a failed attempt.

use std::net::IpAddr;

use postroad_testkit::dns_server::Failure;
use postroad_testkit::smtp_peer::Script;
use serde_json::{Value, json};

use super::outcomes::numbered_kinds;
use super::outside::{Outside, to};
use crate::world::{Engine, World, both_engines};

/// Delay notices after a second instead of five minutes.
const NOTICE_AFTER: (&str, &str) = ("POSTROAD_DELIVERY_DELAY_NOTICE_AFTER", "1s");

both_engines!(
    a_wait_for_the_dns_is_reported_and_then_the_message_is_sent,
    a_wait_for_a_dead_host_is_reported_and_then_the_message_is_sent,
    a_wait_for_a_send_rate_is_reported_and_fails_no_message
);

/// Waits for the first delivery record of a message, which reports a wait and not an attempt. Returns the cause.
async fn until_reported(world: &World, id: i64) -> String {
    let deliveries = world.until_deliveries(id, 1).await;
    let report = &deliveries[0];
    assert_eq!(report["status"], "SoftFail", "{report:#}");
    assert_eq!(
        (&report["mx"], &report["time"]),
        (&Value::Null, &Value::Null),
        "no host was asked: {report:#}"
    );
    assert!(report["next_attempt_at"].is_f64(), "{report:#}");
    let figures = world.call("/api/v1/analytics/message", &json!({ "id": id })).await["data"].take();
    assert_eq!(figures["attempts"], 0, "{figures:#}");
    let details = report["details"].as_str().expect("details").to_owned();
    details.strip_prefix("It was not offered to a receiver yet: ").expect(&details).to_owned()
}

/// Asserts that the message was accepted, reported as delayed without an attempt, and delivered.
async fn assert_events(world: &mut World, id: i64) {
    let events = world.events_at_the_end(id).await;
    let [(1, "message.accepted"), delays @ .., (_, "message.delivered")] = &numbered_kinds(&events)[..]
    else {
        panic!("{events:#?}")
    };
    assert!(!delays.is_empty() && delays.iter().all(|(_, kind)| *kind == "message.delayed"), "{events:#?}");
    let data: Value = serde_json::from_str(&events[1].data).expect("events hold JSON");
    assert_eq!(data.get("attempt"), Some(&Value::Null), "{data:#}");
}

async fn a_wait_for_the_dns_is_reported_and_then_the_message_is_sent(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    outside.dns.fail("shop.example", Failure::ServFail);
    let mut world = outside.start(engine, &[NOTICE_AFTER, ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1s")]);
    let id = world.accepted_id(&to("ann@shop.example")).await;
    let cause = until_reported(&world, id).await;
    assert!(cause.contains("shop.example") && cause.contains("DNS"), "{cause}");
    outside.dns.clear_failures("shop.example");
    world.until_status(id, "Sent").await;
    assert_eq!(peer.messages().len(), 1);
    assert_events(&mut world, id).await;
}

async fn a_wait_for_a_dead_host_is_reported_and_then_the_message_is_sent(engine: Engine) {
    let outside = Outside::new();
    let address = outside.new_address();
    outside.dns.mx("down.example", 10, "mx.down.example").a("mx.down.example", address);
    let mut world = outside.start(engine, &[NOTICE_AFTER, ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "20s")]);
    // The failed connection was opened for the first message, so it counts as an attempt of that message.
    let first = world.accepted_id(&to("ann@down.example")).await;
    let deliveries = world.until_deliveries(first, 1).await;
    assert!(deliveries[0]["time"].is_f64(), "{deliveries:#?}");
    let second = world.accepted_id(&to("bob@down.example")).await;
    let cause = until_reported(&world, second).await;
    assert!(cause.contains("mx.down.example"), "{cause}");
    let peer = outside.peer_at(IpAddr::V4(address), Script::new());
    for id in [first, second] {
        world.until_status(id, "Sent").await;
    }
    assert_eq!(peer.messages().len(), 2);
    assert_events(&mut world, second).await;
}

async fn a_wait_for_a_send_rate_is_reported_and_fails_no_message(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("shop.example", Script::new());
    // Messages that could not be delivered would be given up after two seconds.
    let envs = [NOTICE_AFTER, ("POSTROAD_DELIVERY_GIVE_UP_AFTER", "2s")];
    let mut world = outside.start(engine, &envs);
    let done = world.call("/api/v1/server/update", &json!({ "send_rate": "1/h" })).await;
    assert_eq!(done["status"], "success", "{done}");
    let first = world.accepted_id(&to("ann@shop.example")).await;
    world.until_status(first, "Sent").await;
    let second = world.accepted_id(&to("bob@shop.example")).await;
    let cause = until_reported(&world, second).await;
    assert!(cause.contains("1/h"), "{cause}");
    let done = world.call("/api/v1/server/update", &json!({ "send_rate": "none" })).await;
    assert_eq!(done["status"], "success", "{done}");
    world.until_status(second, "Sent").await;
    assert_eq!(peer.messages().len(), 2);
    assert_events(&mut world, second).await;
}
