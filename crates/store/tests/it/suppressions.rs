//! Suppressed addresses: kept per server; messages to them are held.

use postroad_model::{EventKind, MessageId, Status, SuppressionReason, Timestamp};
use postroad_store::{InitialState, NewSuppression, SuppressionCursor, SuppressionFilter};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    suppressed_recipient_is_held_and_the_others_are_not,
    a_suppression_applies_to_one_server_and_any_letter_case,
    expired_suppression_holds_nothing,
    exempt_and_test_messages_are_not_held,
    older_suppression_stays_unless_it_is_over_or_ends_sooner,
    suppressions_are_found_listed_and_removed,
    many_suppressions_are_added_and_removed_each_with_its_result,
    suppressions_are_listed_newest_first_by_pages_and_filters,
    only_expired_suppressions_are_removed_some_at_a_time,
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

async fn a_suppression_applies_to_one_server_and_any_letter_case(fixture: Fixture) {
    suppress(&fixture, "Bücher@BÜCHER.example", None).await;
    let later = InitialState::Scheduled(fixture.in_secs(60));
    // The same domain in its DNS form.
    let send = fixture.send(fixture.server, &["bücher@xn--bcher-kva.example"], later, b"x");
    let id = fixture.accept(send).await[0];
    assert_eq!(fixture.message(id).await.status, Status::Held);
    let pending = InitialState::Pending;
    let other = fixture.send(fixture.other_server, &["bücher@bücher.example"], pending, b"x");
    let id = fixture.accept(other).await[0];
    let message = fixture.store.find_message(fixture.other_server, id).await.expect("the store works");
    assert_eq!(message.expect("it is there").status, Status::Pending);
}

async fn expired_suppression_holds_nothing(fixture: Fixture) {
    suppress(&fixture, "ann@example.com", Some(fixture.now())).await;
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    assert_eq!(fixture.message(id).await.status, Status::Pending);
}

async fn exempt_and_test_messages_are_not_held(fixture: Fixture) {
    suppress(&fixture, "ann@example.com", None).await;
    let mut exempt = fixture.send_to(&["ann@example.com"]);
    exempt.recipients[0].exempt = true;
    let id = fixture.accept(exempt).await[0];
    assert_eq!(fixture.message(id).await.status, Status::Pending);
    let state = InitialState::TestSent { details: "test".into() };
    let id = fixture.accept(fixture.send(fixture.server, &["ann@example.com"], state, b"x")).await[0];
    assert_eq!(fixture.message(id).await.status, Status::Sent);
}

async fn older_suppression_stays_unless_it_is_over_or_ends_sooner(fixture: Fixture) {
    let expiry = fixture.in_secs(60);
    let add = async |reason, expires_at| {
        let new = new("Ann@example.com", reason, expires_at);
        fixture.store.add_suppression(fixture.server, new).await.expect("the store works")
    };
    let first = add(SuppressionReason::SoftBounce, Some(expiry)).await;
    assert_eq!((first.address.as_str(), first.created_at), ("ann@example.com", fixture.now()));
    assert_eq!(add(SuppressionReason::Complaint, Some(fixture.in_secs(59))).await, first);
    assert_eq!(add(SuppressionReason::Complaint, Some(expiry)).await, first);
    let longer = add(SuppressionReason::Complaint, Some(fixture.in_secs(61))).await;
    assert_eq!((longer.reason, longer.expires_at), (SuppressionReason::Complaint, Some(fixture.in_secs(61))));
    fixture.clock.set(fixture.in_secs(61));
    let second = add(SuppressionReason::SoftBounce, Some(fixture.in_secs(1))).await;
    assert_eq!((second.reason, second.created_at), (SuppressionReason::SoftBounce, fixture.now()));
    let last = add(SuppressionReason::Manual, None).await;
    assert_eq!((last.expires_at, last.origin_message_id), (None, Some(MessageId(17))));
    assert_eq!(add(SuppressionReason::Unsubscribe, None).await, last);
}

async fn suppressions_are_found_listed_and_removed(fixture: Fixture) {
    for address in ["c@example.com", "a@example.com", "b@example.com"] {
        suppress(&fixture, address, None).await;
    }
    suppress(&fixture, "d@example.com", Some(fixture.now())).await;
    let store = &fixture.store;
    let list = async |after: Option<&str>, limit| {
        let found = store.list_suppressions_by_address(fixture.server, after.map(str::to_owned), limit).await;
        found.expect("the store works").into_iter().map(|found| found.address).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 2).await, ["a@example.com", "b@example.com"]);
    assert_eq!(list(Some("b@example.com"), 10).await, ["c@example.com"]);
    let find = async |address: &str| {
        store.find_suppression(fixture.server, address.to_owned()).await.expect("the store works")
    };
    assert_eq!(find("B@example.com").await.expect("it is there").reason, SuppressionReason::HardBounce);
    assert!(find("d@example.com").await.is_none(), "it has expired");
    let remove = async |address: &str| {
        store.remove_suppression(fixture.server, address.to_owned()).await.expect("the store works")
    };
    assert!(remove("B@EXAMPLE.com").await);
    assert!(!remove("b@example.com").await);
    assert!(!remove("d@example.com").await, "it has expired");
    assert!(find("b@example.com").await.is_none());
}

async fn many_suppressions_are_added_and_removed_each_with_its_result(fixture: Fixture) {
    // More than one transaction writes.
    let number = 700;
    let address = |n: usize| format!("User-{n}@example.com");
    suppress(&fixture, "user-3@example.com", None).await;
    let mut all: Vec<NewSuppression> =
        (0..number).map(|n| new(&address(n), SuppressionReason::Manual, None)).collect();
    all.push(NewSuppression {
        origin_message_id: None,
        details: "a \"quote\", a \u{0} and ü".into(),
        ..new("last@bücher.example", SuppressionReason::Complaint, Some(fixture.in_secs(9)))
    });
    all.insert(1, new("USER-0@example.com", SuppressionReason::Complaint, None));
    let added = fixture.store.add_suppressions(fixture.server, all).await.expect("the store works");
    assert_eq!(added.len(), number + 2);
    let not_new: Vec<usize> = (0..added.len()).filter(|at| !added[*at].is_new).collect();
    assert_eq!(not_new, [1, 4], "the same address twice, and one that was there");
    assert_eq!(added[1].stored, added[0].stored);
    assert_eq!(added[4].stored.reason, SuppressionReason::HardBounce);
    assert_eq!(added[600].stored.address, "user-599@example.com");
    let last = &added[number + 1].stored;
    assert_eq!((last.address.as_str(), last.origin_message_id), ("last@xn--bcher-kva.example", None));
    assert_eq!(last.details, "a \"quote\", a \u{fffd} and ü");
    assert_eq!((last.created_at, last.expires_at), (fixture.now(), Some(fixture.in_secs(9))));
    let mut addresses: Vec<String> = (0..number).map(address).collect();
    addresses.extend(["nobody@example.com".to_owned(), "user-0@EXAMPLE.com".to_owned()]);
    let removed =
        fixture.store.remove_suppressions(fixture.server, addresses).await.expect("the store works");
    assert!(removed[..number].iter().all(|removed| *removed));
    assert_eq!(removed[number..], [false, false]);
    let left = fixture.store.list_suppressions_by_address(fixture.server, None, 9).await;
    assert_eq!(left.expect("the store works"), std::slice::from_ref(last));
    assert!(fixture.store.add_suppressions(fixture.server, Vec::new()).await.expect("works").is_empty());
}

async fn suppressions_are_listed_newest_first_by_pages_and_filters(fixture: Fixture) {
    let begin = fixture.now();
    for (seconds, address, reason) in [
        (0, "d@example.com", SuppressionReason::Manual),
        (1, "b@example.com", SuppressionReason::Complaint),
        (1, "a@example.com", SuppressionReason::Manual),
        (1, "c@example.com", SuppressionReason::Manual),
        (2, "e@example.com", SuppressionReason::Complaint),
    ] {
        fixture.clock.set(begin.plus(std::time::Duration::from_secs(seconds)));
        let new = new(address, reason, None);
        fixture.store.add_suppression(fixture.server, new).await.expect("the store works");
    }
    let list = async |filter: SuppressionFilter, limit: usize| {
        let mut pages = String::new();
        let mut after: Option<SuppressionCursor> = None;
        loop {
            let found = fixture.store.list_suppressions(fixture.server, filter.clone(), after, limit).await;
            let found = found.expect("the store works");
            let Some(last) = found.last() else { return pages };
            after = Some(SuppressionCursor { created_at: last.created_at, address: last.address.clone() });
            pages.extend(found.iter().map(|found| &found.address[..1]));
            pages.push(' ');
        }
    };
    let all = SuppressionFilter::default();
    assert_eq!(list(all.clone(), 5).await, "eabcd ");
    assert_eq!(list(all.clone(), 2).await, "ea bc d ");
    let manual = SuppressionFilter { reason: Some(SuppressionReason::Manual), ..all.clone() };
    assert_eq!(list(manual.clone(), 2).await, "ac d ");
    let second = begin.plus(std::time::Duration::from_secs(1));
    assert_eq!(list(SuppressionFilter { since: Some(second), ..all.clone() }, 1).await, "e a b c ");
    assert_eq!(list(SuppressionFilter { until: Some(second), ..all.clone() }, 5).await, "d ");
    assert_eq!(list(SuppressionFilter { since: Some(second), ..manual }, 1).await, "a c ");
    let other = fixture.store.list_suppressions(fixture.other_server, all, None, 5).await;
    assert!(other.expect("the store works").is_empty());
}

async fn only_expired_suppressions_are_removed_some_at_a_time(fixture: Fixture) {
    for seconds in 1..=3 {
        suppress(&fixture, &format!("{seconds}@example.com"), Some(fixture.in_secs(seconds))).await;
    }
    suppress(&fixture, "for-ever@example.com", None).await;
    let remove =
        async |limit| fixture.store.remove_expired_suppressions(limit).await.expect("the store works");
    assert_eq!(remove(5).await, 0);
    fixture.clock.set(fixture.in_secs(2));
    assert_eq!((remove(1).await, remove(5).await, remove(5).await), (1, 1, 0));
    let left = fixture.store.list_suppressions_by_address(fixture.server, None, 9).await;
    let left: Vec<String> = left.expect("the store works").into_iter().map(|left| left.address).collect();
    assert_eq!(left, ["3@example.com", "for-ever@example.com"]);
}
