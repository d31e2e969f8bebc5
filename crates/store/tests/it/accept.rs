//! Accepting sends: each initial state, read back; restarts, concurrent callers, and callers that disconnect.

use std::time::Duration;

use postroad_model::{EventKind, HoldReason, MessageId, SendId, Status};
use postroad_store::InitialState;

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    pending_message_is_queued_for_now,
    scheduled_message_is_queued_for_its_time,
    held_message_has_a_delivery_and_no_queue_entry,
    test_message_is_sent_and_never_queued,
    recipients_share_the_send,
    send_is_read_back_whole,
    foreign_message_is_unknown,
    ids_continue_over_a_restart_with_the_clock_set_back,
    data_survives_a_restart,
    messages_of_several_weeks_are_accepted,
    concurrent_accepts_are_all_stored,
    caller_that_disconnects_leaves_no_partial_send,
);

async fn pending_message_is_queued_for_now(fixture: Fixture) {
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    let message = fixture.message(id).await;
    assert_eq!((message.status, message.next_attempt_at), (Status::Pending, Some(fixture.now())));
    assert_eq!((message.hold_expiry, message.last_delivery_at, message.bounce_for_id), (None, None, 0));
    assert_eq!(fixture.event_kinds(id).await, [EventKind::Accepted]);
    assert!(fixture.deliveries(id).await.is_empty());
    let claimed = fixture.claim_due().await;
    assert_eq!(claimed.len(), 1);
    assert_eq!((claimed[0].server_id, claimed[0].message_id), (fixture.server, id));
    assert_eq!((claimed[0].domain.as_str(), claimed[0].attempts), ("example.com", 0));
    assert_eq!((claimed[0].due_at, claimed[0].expires_at), (fixture.now(), None));
}

async fn scheduled_message_is_queued_for_its_time(fixture: Fixture) {
    let (due, expiry) = (fixture.in_secs(3_600), fixture.in_secs(7_200));
    let state = InitialState::Scheduled(due);
    let mut send = fixture.send(fixture.server, &["ann@example.com"], state, b"later");
    send.info.options.expires_at = Some(expiry);
    let id = fixture.accept(send).await[0];
    let message = fixture.message(id).await;
    assert_eq!((message.status, message.next_attempt_at), (Status::Scheduled, Some(due)));
    assert_eq!(fixture.event_kinds(id).await, [EventKind::Accepted]);
    fixture.clock.advance(Duration::from_micros(3_600_000_000 - 1));
    assert!(fixture.claim_due().await.is_empty(), "claimed before it is due");
    fixture.clock.advance(Duration::from_micros(1));
    let claimed = fixture.claim_due().await;
    assert_eq!((claimed[0].message_id, claimed[0].expires_at), (id, Some(expiry)));
}

async fn held_message_has_a_delivery_and_no_queue_entry(fixture: Fixture) {
    let expiry = fixture.in_secs(7 * 24 * 3_600);
    let state =
        InitialState::Held { reason: HoldReason::Development, details: "in development".into(), expiry };
    let id = fixture.accept(fixture.send(fixture.server, &["ann@example.com"], state, b"held")).await[0];
    let message = fixture.message(id).await;
    assert_eq!((message.status, message.hold_expiry), (Status::Held, Some(expiry)));
    assert_eq!((message.next_attempt_at, message.last_delivery_at), (None, Some(fixture.now())));
    assert_eq!(fixture.event_kinds(id).await, [EventKind::Accepted, EventKind::Held]);
    let deliveries = fixture.deliveries(id).await;
    assert_eq!(deliveries.len(), 1);
    assert_eq!(deliveries[0].record.status, Status::Held);
    assert_eq!(
        (deliveries[0].record.details.as_str(), deliveries[0].record.output.as_str()),
        ("in development", "")
    );
    assert!(fixture.claim_due().await.is_empty());
}

async fn test_message_is_sent_and_never_queued(fixture: Fixture) {
    let state = InitialState::TestSent { details: "not delivered".into() };
    let id = fixture.accept(fixture.send(fixture.server, &["ann@example.com"], state, b"test")).await[0];
    let message = fixture.message(id).await;
    assert_eq!((message.status, message.send.test), (Status::Sent, true));
    assert_eq!((message.next_attempt_at, message.hold_expiry), (None, None));
    assert_eq!(fixture.event_kinds(id).await, [EventKind::Accepted, EventKind::Delivered]);
    assert!(fixture.events(id).await.iter().all(|event| event.test));
    assert_eq!(fixture.deliveries(id).await[0].record.status, Status::Sent);
    fixture.clock.advance(Duration::from_secs(1_000_000));
    assert!(fixture.claim_due().await.is_empty());
}

async fn recipients_share_the_send(fixture: Fixture) {
    let addresses: Vec<String> = (0..150).map(|n| format!("person{n}@example{}.com", n % 7)).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let send = fixture.send_to(&addresses);
    let send_id = send.info.id;
    let ids = fixture.accept(send).await;
    for (id, address) in ids.iter().zip(&addresses) {
        let message = fixture.message(*id).await;
        assert_eq!((message.rcpt_to.as_str(), message.send.id), (*address, send_id));
        assert_eq!(fixture.event_kinds(*id).await, [EventKind::Accepted]);
    }
    let counts = fixture.row_counts().await;
    assert_eq!((counts["sends"], counts["bodies"], counts["messages"]), (1, 1, 150));
    assert_eq!((counts["queue"], counts["events"], counts["deliveries"]), (150, 150, 0));
    let claimed = fixture.claim_due().await;
    assert_eq!(claimed.iter().map(|entry| entry.message_id).collect::<Vec<_>>(), ids);
    assert_eq!(claimed[8].domain.as_str(), "example1.com");
}

async fn send_is_read_back_whole(fixture: Fixture) {
    let mut send = fixture.send_to(&["Jürgen@müller.example"]);
    send.info.credential_id = Some(postroad_model::CredentialId(5));
    send.info.subject = "tab\there, quote ' and \\ and 🦀".into();
    let (expected, token) = (format!("{:?}", send.info), send.recipients[0].token.clone());
    let id = fixture.accept(send).await[0];
    let message = fixture.message(id).await;
    assert_eq!(format!("{:?}", message.send), expected);
    assert_eq!((message.rcpt_to.as_str(), &message.token), ("Jürgen@müller.example", &token));
    let summary = fixture
        .store
        .find_message_summary(fixture.server, id)
        .await
        .expect("the store works")
        .expect("it is there");
    assert_eq!((summary.id, summary.token), (id, token));
}

async fn foreign_message_is_unknown(fixture: Fixture) {
    let send = fixture.send_to(&["ann@example.com"]);
    let send_id = send.info.id;
    let id = fixture.accept(send).await[0];
    let store = &fixture.store;
    for (server, id) in [
        (fixture.other_server, id),
        (fixture.server, MessageId(id.0 + 1)),
        (fixture.server, MessageId(send_id.0)),
        (fixture.server, MessageId(0)),
        (fixture.server, MessageId(-1)),
        (fixture.server, MessageId(i64::MAX)),
    ] {
        assert!(store.find_message(server, id).await.expect("the store works").is_none(), "{server} {id}");
        assert!(
            store.find_message_summary(server, id).await.expect("the store works").is_none(),
            "{server} {id}"
        );
        assert!(
            store.list_deliveries(server, id).await.expect("the store works").is_empty(),
            "{server} {id}"
        );
        assert!(store.list_events(server, id).await.expect("the store works").is_empty(), "{server} {id}");
    }
    assert!(store.read_body(fixture.server, SendId(1), 5).await.is_err());
}

async fn ids_continue_over_a_restart_with_the_clock_set_back(mut fixture: Fixture) {
    let mut last = 0;
    for _ in 0..3 {
        let ids = fixture.accept(fixture.send_to(&["ann@example.com", "bob@example.com"])).await;
        assert!(ids[0].0 > last && ids[1] > ids[0], "{ids:?} after {last}");
        last = fixture.store.ids().expect("a node has ids").last();
        fixture.clock.set(fixture.now().minus(Duration::from_hours(1)));
        fixture = fixture.reopen().await;
    }
    assert!(fixture.store.ids().expect("a node has ids").next() > last);
}

async fn data_survives_a_restart(fixture: Fixture) {
    let send = fixture.send_to(&["ann@example.com"]);
    let (send_id, size) = (send.info.id, send.info.size);
    let id = fixture.accept(send).await[0];
    let before = (format!("{:?}", fixture.message(id).await), fixture.events(id).await);
    let fixture = fixture.reopen().await.reopen().await;
    let after = (format!("{:?}", fixture.message(id).await), fixture.events(id).await);
    assert_eq!(before, after);
    let body = fixture.store.read_body(fixture.server, send_id, size).await.expect("the store works");
    assert_eq!(body, b"Subject: hello\r\n\r\nHello\r\n");
    fixture.store.reap().await.expect("the store works");
    assert_eq!(fixture.claim_due().await[0].message_id, id);
    assert_eq!(fixture.store.list_servers().await.expect("the store works").len(), 2);
}

/// PostgreSQL keeps each week in its own partition. Here each send and its message are in different weeks.
async fn messages_of_several_weeks_are_accepted(fixture: Fixture) {
    let mut ids = Vec::new();
    for _ in 0..5 {
        let mut send = fixture.send_to(&["ann@example.com"]);
        fixture.clock.advance(Duration::from_hours(7 * 24));
        let generator = fixture.store.ids().expect("a node has ids");
        send.info.id = SendId(generator.next());
        ids.extend(fixture.accept(send).await);
    }
    let claimed = fixture.claim_due().await;
    assert_eq!(claimed.iter().map(|entry| entry.message_id).collect::<Vec<_>>(), ids);
    let outcomes = ids.iter().map(|id| fixture.outcome(*id, Status::Sent)).collect();
    assert_eq!(fixture.store.finish(outcomes).await.expect("the store works"), [true; 5]);
    for id in ids {
        assert_eq!(fixture.event_kinds(id).await, [EventKind::Accepted, EventKind::Delivered]);
    }
}

async fn concurrent_accepts_are_all_stored(fixture: Fixture) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..300 {
        let server = if n % 3 == 0 { fixture.other_server } else { fixture.server };
        let message = format!("message {n}");
        let state = InitialState::Pending;
        let send = fixture.send(server, &["ann@example.com"], state, message.as_bytes());
        let (store, id, send_id) = (fixture.store.clone(), send.recipients[0].id, send.info.id);
        tasks.spawn(async move {
            store.accept(send).await.expect("the store works");
            // Visible as soon as `accept` returns.
            assert!(store.find_message(server, id).await.expect("the store works").is_some());
            let body = store.read_body(server, send_id, message.len() as u64).await.expect("the store works");
            assert_eq!(body, message.as_bytes());
        });
    }
    tasks.join_all().await;
    let counts = fixture.row_counts().await;
    assert_eq!((counts["messages"], counts["events"], counts["queue"]), (300, 300, 300));
}

async fn caller_that_disconnects_leaves_no_partial_send(fixture: Fixture) {
    for timeout_us in [0, 0, 0, 50, 100, 500, 1_000, 2_000, 5_000] {
        for addresses in [&["ann@example.com"][..], &["ann@example.com", "bob@example.com"]] {
            let accept = fixture.store.accept(fixture.send_to(addresses));
            let _ = tokio::time::timeout(Duration::from_micros(timeout_us), accept).await;
        }
    }
    // This send is committed after everything that was begun before it.
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    let counts = fixture.row_counts().await;
    assert_eq!(counts["sends"], counts["bodies"]);
    assert_eq!((counts["messages"], counts["messages"]), (counts["events"], counts["queue"]));
    let without_send = "SELECT count(*) FROM messages WHERE send_id NOT IN (SELECT id FROM sends)";
    assert_eq!(fixture.query_int(without_send).await, 0);
}
