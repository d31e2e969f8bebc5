//! Scheduled messages that become due, and queued messages that expire.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::{EventKind, HoldReason, MessageId, Status, Timestamp};
use postroad_store::{
    ClaimSkips, InitialState, NewSend, Outcome, RetryResult, ScheduleChange, ScheduleChangeResult,
};

use crate::by_operator;
use crate::fixture::{Fixture, on_both_engines, simulator_domain};

on_both_engines!(
    scheduled_message_becomes_pending_when_it_is_due,
    scheduled_messages_count_against_the_hourly_limit_when_they_become_due,
    a_message_that_became_due_late_is_uncounted_in_the_hour_that_counted_it,
    a_retried_message_is_uncounted_in_the_hour_in_which_it_was_accepted,
    servers_take_turns_when_scheduled_messages_become_due,
    a_claim_goes_on_after_messages_that_the_hourly_limit_holds,
    scheduled_message_that_is_retried_is_due_now,
    released_message_with_a_future_send_at_is_scheduled,
    expired_messages_are_listed_and_finished_whoever_has_claimed_them,
    begun_message_is_not_expired_until_it_is_unbegun,
);

fn scheduled(fixture: &Fixture, addresses: &[&str], seconds: u64) -> NewSend {
    let due_at = fixture.in_secs(seconds);
    let send = fixture.send(fixture.server, addresses, InitialState::Scheduled(due_at), b"x");
    with_send_at(send, due_at)
}

fn with_send_at(mut send: NewSend, send_at: Timestamp) -> NewSend {
    send.info.options.send_at = Some(send_at);
    send
}

async fn scheduled_message_becomes_pending_when_it_is_due(fixture: Fixture) {
    let id = fixture.accept(scheduled(&fixture, &["a@example.com"], 60)).await[0];
    let ahead =
        fixture.store.claim(fixture.in_secs(600), 10, ClaimSkips::default()).await.expect("the store works");
    assert!(ahead.is_empty(), "it is not due");
    assert_eq!(fixture.message(id).await.status, Status::Scheduled);
    fixture.clock.advance(Duration::from_mins(1));
    // Its domain is skipped, but the message becomes pending all the same.
    let domain = postroad_model::DomainName::parse("example.com").expect("a domain");
    fixture
        .store
        .claim(fixture.now(), 1, ClaimSkips { domains: vec![domain], servers: Vec::new() })
        .await
        .expect("the store works");
    assert_eq!(fixture.message(id).await.status, Status::Pending);
    assert_eq!(fixture.event_kinds(id).await, [EventKind::Accepted]);
}

async fn a_message_that_became_due_late_is_uncounted_in_the_hour_that_counted_it(fixture: Fixture) {
    let limit = Some(2);
    by_operator::set_hourly_limit(&fixture.store, fixture.server, limit).await.expect("the store works");
    let to_next_hour = 3_600 - fixture.now().as_secs().unsigned_abs() % 3_600;
    fixture.clock.advance(Duration::from_secs(to_next_hour + 3_540));
    let send = NewSend { hourly_limit: limit, ..scheduled(&fixture, &["a@example.com"], 30) };
    let id = fixture.accept(send).await[0];
    fixture.clock.advance(Duration::from_mins(2));
    assert_eq!(fixture.claim_due().await.len(), 1, "it has been due since the hour before");
    let counted = "SELECT CAST(coalesce(sum(messages), 0) AS BIGINT) FROM server_hours";
    assert_eq!(fixture.query_int(counted).await, 1);
    let later = ScheduleChange::MoveTo(fixture.in_secs(7_200));
    let moved = fixture.store.change_scheduled(fixture.server, id, later, simulator_domain()).await;
    assert_eq!(moved.expect("the store works"), ScheduleChangeResult::Done);
    assert_eq!(fixture.query_int(counted).await, 0);
}

async fn a_retried_message_is_uncounted_in_the_hour_in_which_it_was_accepted(fixture: Fixture) {
    let limit = Some(2);
    by_operator::set_hourly_limit(&fixture.store, fixture.server, limit).await.expect("the store works");
    let send = NewSend { hourly_limit: limit, ..fixture.send_to(&["a@example.com"]) };
    let id = fixture.accept(send).await[0];
    let counted = "SELECT CAST(coalesce(sum(messages), 0) AS BIGINT) FROM server_hours";
    assert_eq!(fixture.query_int(counted).await, 1);
    fixture.clock.advance(Duration::from_hours(1));
    let retried = fixture.store.retry(fixture.server, id, simulator_domain()).await;
    assert_eq!(retried.expect("the store works"), RetryResult::Now);
    let later = ScheduleChange::MoveTo(fixture.in_secs(7_200));
    let moved = fixture.store.change_scheduled(fixture.server, id, later, simulator_domain()).await;
    assert_eq!(moved.expect("the store works"), ScheduleChangeResult::Done);
    assert_eq!(fixture.query_int(counted).await, 0);
}

async fn scheduled_messages_count_against_the_hourly_limit_when_they_become_due(fixture: Fixture) {
    let limit = Some(2);
    by_operator::set_hourly_limit(&fixture.store, fixture.server, limit).await.expect("the store works");
    let limited = |send| NewSend { hourly_limit: limit, ..send };
    let addresses = ["a@example.com", "b@example.com", "c@example.com"];
    let mut later = limited(scheduled(&fixture, &addresses, 7_200));
    let mut exempt = later.recipients[0].clone();
    exempt.id = MessageId(fixture.store.ids().expect("a node has ids").next());
    exempt.token = postroad_model::MessageToken::random(&mut rand::rng());
    exempt.exempt = true;
    later.recipients.push(exempt);
    let later = fixture.accept(later).await;
    assert_eq!(fixture.query_int("SELECT count(*) FROM server_hours").await, 0, "nothing is due yet");
    let now = fixture.accept(limited(fixture.send_to(&["d@example.com", "e@example.com"]))).await;
    for id in now {
        assert_eq!(fixture.message(id).await.status, Status::Pending, "the present hour is free");
    }
    fixture.clock.advance(Duration::from_hours(2));
    let claimed = fixture.claim_due().await.len();
    assert_eq!(claimed, 2 + 3, "the first two, the two that fit, and the one that does not count");
    let mut statuses = Vec::new();
    for id in &later {
        statuses.push(fixture.message(*id).await.status);
    }
    assert_eq!(statuses, [Status::Pending, Status::Pending, Status::Held, Status::Pending]);
    let held = fixture.message(later[2]).await;
    assert_eq!(held.hold_expiry, Some(fixture.in_secs(7 * 24 * 3_600)));
    let deliveries = fixture.deliveries(later[2]).await;
    assert_eq!(deliveries[0].record.details, "The hourly limit of 2 messages is reached");
    assert_eq!(fixture.event_kinds(later[2]).await, [EventKind::Accepted, EventKind::Held]);
    let full = limited(fixture.send_to(&["f@example.com"]));
    let full = fixture.accept(full).await[0];
    assert_eq!(fixture.message(full).await.status, Status::Held, "the hour is used up");
    let exceeded = "SELECT count(*) FROM events WHERE kind = 'send_limit.exceeded'";
    assert_eq!(fixture.query_int(exceeded).await, 2, "once in each hour");
}

async fn servers_take_turns_when_scheduled_messages_become_due(fixture: Fixture) {
    let many: Vec<String> = (0..40).map(|number| format!("u{number}@example.com")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    fixture.accept(scheduled(&fixture, &many, 60)).await;
    let due_at = fixture.in_secs(61);
    let other =
        fixture.send(fixture.other_server, &["ann@example.com"], InitialState::Scheduled(due_at), b"x");
    let other = fixture.accept(with_send_at(other, due_at)).await[0];
    fixture.clock.advance(Duration::from_mins(2));
    fixture.store.claim(fixture.now(), 10, ClaimSkips::default()).await.expect("the store works");
    let message = fixture.store.find_message(fixture.other_server, other).await.expect("the store works");
    assert_eq!(message.expect("it is there").status, Status::Pending, "it waits for nobody else's mail");
    let pending = "SELECT count(*) FROM messages WHERE status = 'Pending'";
    assert!(fixture.query_int(pending).await <= 11, "about as many as were wanted");
    let mut claimed = 0;
    for _ in 0..10 {
        claimed += fixture
            .store
            .claim(fixture.now(), 10, ClaimSkips::default())
            .await
            .expect("the store works")
            .len();
    }
    assert_eq!(claimed, 41 - 10, "the rest follows");
}

async fn a_claim_goes_on_after_messages_that_the_hourly_limit_holds(fixture: Fixture) {
    let limit = Some(1);
    by_operator::set_hourly_limit(&fixture.store, fixture.server, limit).await.expect("the store works");
    let addresses: Vec<String> = (0..31).map(|number| format!("u{number}@example.com")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    fixture.accept(NewSend { hourly_limit: limit, ..scheduled(&fixture, &addresses, 60) }).await;
    fixture.clock.advance(Duration::from_mins(2));
    let first = fixture.store.claim(fixture.now(), 10, ClaimSkips::default()).await.expect("the store works");
    assert_eq!(first.len(), 1, "the one that fits");
    let second =
        fixture.store.claim(fixture.now(), 10, ClaimSkips::default()).await.expect("the store works");
    assert!(second.is_empty());
    let held = "SELECT count(*) FROM messages WHERE status = 'Held'";
    assert_eq!(fixture.query_int(held).await, 30, "the second claim went on, because it found nothing");
}

async fn scheduled_message_that_is_retried_is_due_now(fixture: Fixture) {
    let id = fixture.accept(scheduled(&fixture, &["a@example.com"], 3_600)).await[0];
    assert_eq!(
        fixture.store.retry(fixture.server, id, simulator_domain()).await.expect("the store works"),
        RetryResult::Now
    );
    assert_eq!(fixture.claim_due().await.len(), 1);
    assert_eq!(fixture.message(id).await.status, Status::Pending);
}

async fn released_message_with_a_future_send_at_is_scheduled(fixture: Fixture) {
    let state = InitialState::Held {
        reason: HoldReason::Development,
        details: "held".into(),
        expiry: fixture.in_secs(3_600),
    };
    let send = fixture.send(fixture.server, &["ann@example.com"], state, b"x");
    let id = fixture.accept(with_send_at(send, fixture.in_secs(600))).await[0];
    assert_eq!(
        fixture.store.retry(fixture.server, id, simulator_domain()).await.expect("the store works"),
        RetryResult::Released
    );
    let message = fixture.message(id).await;
    assert_eq!((message.status, message.next_attempt_at), (Status::Scheduled, Some(fixture.in_secs(600))));
    let released = fixture.events(id).await.pop().expect("an event");
    assert_eq!(released.data, r#"{"status":"Scheduled"}"#);
    fixture.clock.advance(Duration::from_mins(10));
    assert_eq!(fixture.claim_due().await.len(), 1);
    assert_eq!(fixture.message(id).await.status, Status::Pending);
}

fn expiring(fixture: &Fixture, seconds: u64) -> NewSend {
    let mut send = fixture.send_to(&["ann@example.com"]);
    send.info.options.expires_at = Some(fixture.in_secs(seconds));
    send
}

async fn finish_waiting(fixture: &Fixture, id: MessageId, due_at: Timestamp) -> bool {
    let outcome = Outcome { claimed_due_at: Some(due_at), ..fixture.outcome(id, Status::HardFail) };
    fixture.store.finish_waiting(Arc::new(outcome)).await.expect("the store works")
}

async fn expired_messages_are_listed_and_finished_whoever_has_claimed_them(fixture: Fixture) {
    let claimed = fixture.accept(expiring(&fixture, 60)).await[0];
    assert_eq!(fixture.claim_due().await.len(), 1);
    let free = fixture.accept(expiring(&fixture, 60)).await[0];
    fixture.accept(expiring(&fixture, 61)).await;
    fixture.accept(fixture.send_to(&["never@example.com"])).await;
    let due_at = fixture.now();
    fixture.clock.advance(Duration::from_mins(1));
    let expired = fixture.store.list_expired(None, 10).await.expect("the store works");
    assert_eq!(expired.iter().map(|entry| entry.message_id).collect::<Vec<_>>(), [claimed, free]);
    let after = (expired[0].expires_at.expect("it expires"), claimed);
    let rest = fixture.store.list_expired(Some(after), 10).await.expect("the store works");
    assert_eq!(rest.iter().map(|entry| entry.message_id).collect::<Vec<_>>(), [free]);
    assert!(!finish_waiting(&fixture, free, fixture.now()).await, "it was due at another time");
    for id in [claimed, free] {
        assert!(finish_waiting(&fixture, id, due_at).await);
        assert_eq!(fixture.message(id).await.status, Status::HardFail);
        assert_eq!(fixture.event_kinds(id).await, [EventKind::Accepted, EventKind::Failed]);
        assert!(!finish_waiting(&fixture, id, due_at).await, "once");
    }
    assert!(fixture.store.list_expired(None, 10).await.expect("the store works").is_empty());
    assert!(!fixture.finish(fixture.outcome(claimed, Status::Sent)).await, "its claim is over");
}

async fn begun_message_is_not_expired_until_it_is_unbegun(fixture: Fixture) {
    let id = fixture.accept(expiring(&fixture, 60)).await[0];
    let due_at = fixture.claim_due().await[0].due_at;
    let request = || postroad_store::BeginRequest {
        server_id: fixture.server,
        message_id: id,
        due_at,
        needs_message: false,
    };
    fixture.store.begin(vec![request()]).await.expect("the store works");
    fixture.clock.advance(Duration::from_mins(1));
    assert!(!finish_waiting(&fixture, id, due_at).await);
    fixture.store.unbegin(fixture.server, id).await.expect("the store works");
    let begun = fixture.store.begin(vec![request()]).await.expect("the store works");
    assert!(matches!(begun[..], [postroad_store::BeginResult::Go(_)]), "it is still claimed: {begun:?}");
    fixture.store.unbegin(fixture.server, id).await.expect("the store works");
    assert!(finish_waiting(&fixture, id, due_at).await);
}
