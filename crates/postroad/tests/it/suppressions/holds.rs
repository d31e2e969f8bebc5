//! Mail to a suppressed address is held; mail accepted after the suppression was removed is sent.

use std::time::Duration;

use postroad_model::{Clock, EventKind, SystemClock};
use postroad_testkit::eventually;
use serde_json::{Value, json};

use super::{ADD, GET, REMOVE, add, call_ok};
use crate::world::{World, both_engines, good_but};

async fn send(world: &World, address: &str) -> i64 {
    world.accepted_id(&good_but(json!({"to": [address]}))).await
}

both_engines!(
    mail_to_any_spelling_is_held_until_the_suppression_is_removed,
    a_hold_is_reported_with_the_reason_of_the_suppression,
    an_expired_suppression_holds_nothing,
    retry_does_not_release_messages_to_suppressed_addresses,
    an_address_suppressed_after_the_accept_gets_no_mail,
    suppressions_are_looked_up_neither_in_test_mode_nor_for_simulated_recipients
);

async fn mail_to_any_spelling_is_held_until_the_suppression_is_removed(world: World) {
    call_ok(
        &world,
        ADD,
        &json!({"address": "Ann@Bücher.example", "reason": "unsubscribe", "details": "by letter"}),
    )
    .await;
    for spelling in ["ann@bücher.example", "ANN@xn--bcher-kva.example", "Ann@BÜCHER.Example"] {
        let id = send(&world, spelling).await;
        let deliveries = world.until_status(id, "Held").await;
        let details = deliveries[0]["details"].as_str().unwrap();
        assert!(details.starts_with("The address is suppressed: unsubscribe since 20"), "{details}");
        assert!(details.ends_with(": by letter"), "{details}");
    }
    let other = send(&world, "ann.b@bücher.example").await;
    world.until_status(other, "Sent").await;
    call_ok(&world, REMOVE, &json!({"address": "ann@bücher.example"})).await;
    let next = send(&world, "ann@bücher.example").await;
    world.until_status(next, "Sent").await;
}

async fn a_hold_is_reported_with_the_reason_of_the_suppression(world: World) {
    let mut world = world;
    call_ok(&world, ADD, &json!({"address": "ann@example.com", "reason": "complaint"})).await;
    let since = call_ok(&world, GET, &json!({"address": "ann@example.com"})).await["created_at"].clone();
    let id = send(&world, "ann@example.com").await;
    world.until_status(id, "Held").await;
    let deliveries = world.until_deliveries(id, 1).await;
    let events = world.events_at_the_end(id).await;
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Accepted, EventKind::Held]);
    let data: Value = serde_json::from_str(&events[1].data).unwrap();
    assert_eq!(
        data,
        json!({
            "status": "Held", "details": deliveries[0]["details"], "reason": "suppressed",
            "suppression": {"reason": "complaint", "since": since},
        })
    );
}

async fn an_expired_suppression_holds_nothing(world: World) {
    let soon = SystemClock.now().plus(Duration::from_secs(3)).to_rfc3339();
    call_ok(&world, ADD, &json!({"address": "ann@example.com", "expires_at": soon})).await;
    let held = send(&world, "ann@example.com").await;
    world.until_status(held, "Held").await;
    eventually(async || {
        let found = world.call(GET, &json!({"address": "ann@example.com"})).await;
        if found["status"] == "success" { Err(found) } else { Ok(()) }
    })
    .await;
    let next = send(&world, "ann@example.com").await;
    world.until_status(next, "Sent").await;
}

async fn retry_does_not_release_messages_to_suppressed_addresses(world: World) {
    add(&world, "ann@example.com").await;
    let id = send(&world, "ann@example.com").await;
    world.until_status(id, "Held").await;
    let (out, _) = world.refused_queue(&["retry", &id.to_string()]);
    assert!(!out.contains("released"), "{out}");
    assert!(out.contains("not retried: its recipient is suppressed (manual since 20"), "{out}");
    assert_eq!(world.until_status(id, "Held").await.len(), 1, "nothing was changed");
    call_ok(&world, REMOVE, &json!({"address": "ann@example.com"})).await;
    assert_eq!(world.queue(&["retry", &id.to_string()])[0]["result"], "released");
    world.until_status(id, "Sent").await;
}

async fn an_address_suppressed_after_the_accept_gets_no_mail(world: World) {
    world.queue(&["suspend", "domain:example.com", "--reason", "so that it waits"]);
    let ids = [send(&world, "ann@example.com").await, send(&world, "bob@example.com").await];
    // Suppress the address within the seconds in which a fresh message is not read from the store again.
    add(&world, "Ann@example.com").await;
    world.queue(&["resume", "domain:example.com"]);
    let deliveries = world.until_status(ids[0], "Held").await;
    assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
    assert!(
        deliveries[0]["details"].as_str().unwrap().starts_with("The address is suppressed"),
        "{deliveries:#?}"
    );
    world.until_status(ids[1], "Sent").await;
}

async fn suppressions_are_looked_up_neither_in_test_mode_nor_for_simulated_recipients(world: World) {
    add(&world, "ann@example.com").await;
    add(&world, "delivered@sim.postroad.test").await;
    let simulated = send(&world, "delivered@sim.postroad.test").await;
    world.until_status(simulated, "Sent").await;
    // A simulated recipient is looked up neither when the message is accepted nor when it is tried again.
    add(&world, "greylist@sim.postroad.test").await;
    let tried_again = send(&world, "greylist@sim.postroad.test").await;
    world.until_status(tried_again, "Sent").await;
    let body = good_but(json!({"to": ["ann@example.com"]}));
    let answer = world.call_with(crate::world::SEND, &[("X-Test-Mode", "true")], &body).await;
    let id = answer["data"]["messages"]["ann@example.com"]["id"].as_i64().unwrap();
    world.until_status(id, "Sent").await;
}
