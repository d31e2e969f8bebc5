//! Suppressed addresses: kept per server, and held back when a send comes for them.

use postroad_model::{EventKind, MessageId, Status, SuppressionReason, Timestamp};
use postroad_store::{InitialState, NewSuppression};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    suppressed_recipient_is_held_and_the_others_are_not,
    suppression_is_of_one_server_and_any_letter_case,
    suppression_that_is_over_holds_nothing,
    exempt_and_test_recipients_are_not_looked_up,
    older_suppression_stays_unless_it_is_over,
    suppressions_are_found_listed_and_removed,
);

fn new(address: &str, reason: SuppressionReason, expires_at: Option<Timestamp>) -> NewSuppression {
    NewSuppression {
        address: address.to_owned(),
        reason,
        details: format!("{reason} of {address}"),
        origin_message_id: Some(MessageId(17)),
        expires_at,
    }
}

async fn suppress(fixture: &Fixture, address: &str, expires_at: Option<Timestamp>) {
    let new = new(address, SuppressionReason::HardBounce, expires_at);
    fixture.store.add_suppression(fixture.server, new).await.expect("the store works");
}

async fn suppressed_recipient_is_held_and_the_others_are_not(fixture: Fixture) {
    suppress(&fixture, "bob@example.com", None).await;
    let ids =
        fixture.accept(fixture.send_to(&["ann@example.com", "Bob@Example.com", "cid@example.com"])).await;
    let held = fixture.message(ids[1]).await;
    assert_eq!((held.status, held.next_attempt_at), (Status::Held, None));
    assert_eq!(held.hold_expiry, Some(fixture.in_secs(7 * 24 * 3_600)));
    assert_eq!(held.last_delivery_at, Some(fixture.now()));
    let deliveries = fixture.deliveries(ids[1]).await;
    assert_eq!(deliveries.len(), 1);
    assert_eq!(
        deliveries[0].record.details,
        "The address is suppressed: hard_bounce since 2026-11-15T00:00:00Z: hard_bounce of bob@example.com"
    );
    assert_eq!(deliveries[0].record.status, Status::Held);
    assert_eq!(fixture.event_kinds(ids[1]).await, [EventKind::Accepted, EventKind::Held]);
    let claimed: Vec<MessageId> = fixture.claim_due().await.iter().map(|entry| entry.message_id).collect();
    assert_eq!(claimed, [ids[0], ids[2]]);
    assert_eq!(fixture.event_kinds(ids[0]).await, [EventKind::Accepted]);
}

async fn suppression_is_of_one_server_and_any_letter_case(fixture: Fixture) {
    suppress(&fixture, "Bücher@BÜCHER.example", None).await;
    let later = InitialState::Scheduled(fixture.in_secs(60));
    let send = fixture.send(fixture.server, &["bücher@xn--bcher-kva.example"], later, b"x");
    // `Domain` of a fixture's recipient is what follows the @.
    let id = fixture.accept(send).await[0];
    assert_eq!(fixture.message(id).await.status, Status::Held);
    let pending = InitialState::Pending;
    let other = fixture.send(fixture.other_server, &["bücher@bücher.example"], pending, b"x");
    let id = fixture.accept(other).await[0];
    let message = fixture.store.find_message(fixture.other_server, id).await.expect("the store works");
    assert_eq!(message.expect("it is there").status, Status::Pending);
}

async fn suppression_that_is_over_holds_nothing(fixture: Fixture) {
    suppress(&fixture, "ann@example.com", Some(fixture.now())).await;
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    assert_eq!(fixture.message(id).await.status, Status::Pending);
}

async fn exempt_and_test_recipients_are_not_looked_up(fixture: Fixture) {
    suppress(&fixture, "ann@example.com", None).await;
    let mut exempt = fixture.send_to(&["ann@example.com"]);
    exempt.recipients[0].exempt = true;
    let id = fixture.accept(exempt).await[0];
    assert_eq!(fixture.message(id).await.status, Status::Pending);
    let state = InitialState::TestSent { details: "test".into() };
    let id = fixture.accept(fixture.send(fixture.server, &["ann@example.com"], state, b"x")).await[0];
    assert_eq!(fixture.message(id).await.status, Status::Sent);
}

async fn older_suppression_stays_unless_it_is_over(fixture: Fixture) {
    let expiry = fixture.in_secs(60);
    let add = async |reason, expires_at| {
        let new = new("Ann@example.com", reason, expires_at);
        fixture.store.add_suppression(fixture.server, new).await.expect("the store works")
    };
    let first = add(SuppressionReason::SoftBounce, Some(expiry)).await;
    assert_eq!((first.address.as_str(), first.created_at), ("ann@example.com", fixture.now()));
    assert_eq!(add(SuppressionReason::Complaint, None).await, first);
    fixture.clock.set(expiry);
    let second = add(SuppressionReason::Manual, None).await;
    assert_eq!((second.reason, second.created_at), (SuppressionReason::Manual, expiry));
    assert_eq!((second.expires_at, second.origin_message_id), (None, Some(MessageId(17))));
    assert_eq!(add(SuppressionReason::Unsubscribe, None).await, second);
}

async fn suppressions_are_found_listed_and_removed(fixture: Fixture) {
    for address in ["c@example.com", "a@example.com", "b@example.com"] {
        suppress(&fixture, address, None).await;
    }
    suppress(&fixture, "d@example.com", Some(fixture.now())).await;
    let store = &fixture.store;
    let list = async |after: Option<&str>, limit| {
        let found = store.list_suppressions(fixture.server, after.map(str::to_owned), limit).await;
        found.expect("the store works").into_iter().map(|found| found.address).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 2).await, ["a@example.com", "b@example.com"]);
    assert_eq!(list(Some("b@example.com"), 10).await, ["c@example.com"]);
    let find = async |address: &str| {
        store.find_suppression(fixture.server, address.to_owned()).await.expect("the store works")
    };
    assert_eq!(find("B@example.com").await.expect("it is there").reason, SuppressionReason::HardBounce);
    assert!(find("d@example.com").await.is_none(), "it is over");
    let remove = async |address: &str| {
        store.remove_suppression(fixture.server, address.to_owned()).await.expect("the store works")
    };
    assert!(remove("B@EXAMPLE.com").await);
    assert!(!remove("b@example.com").await);
    assert!(find("b@example.com").await.is_none());
}
