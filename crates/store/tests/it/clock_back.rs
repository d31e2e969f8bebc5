//! A clock that was a day ahead and came back.

use std::time::Duration;

use postroad_model::{EventSet, GateAction, GateScope, Status, Timestamp};
use postroad_store::{InitialState, NewGate, NewSend, Outcome};

use crate::fixture::{Fixture, on_both_engines};
use crate::webhooks;

on_both_engines!(
    messages_that_were_due_a_day_ahead_are_due_again,
    claimed_messages_keep_their_due_time,
    clock_that_was_ahead_is_noticed_after_a_restart,
    webhook_events_of_the_day_ahead_are_due_again,
    holds_gates_and_limits_of_the_day_ahead_end_in_time,
);

const DAY: Duration = Duration::from_hours(24);
const PAUSE_MAX: Duration = Duration::from_hours(7);

/// Sets the clock a day ahead; returns when it was right.
fn go_ahead(fixture: &Fixture) -> Timestamp {
    let now = fixture.now();
    fixture.clock.advance(DAY);
    now
}

async fn soft_failed(fixture: &Fixture) -> postroad_model::MessageId {
    let id = fixture.claimed_message().await;
    assert!(fixture.finish(fixture.outcome(id, Status::SoftFail)).await);
    id
}

async fn messages_that_were_due_a_day_ahead_are_due_again(fixture: Fixture) {
    let before = soft_failed(&fixture).await;
    let right = go_ahead(&fixture);
    assert!(!fixture.store.is_clock_behind());
    let failed = soft_failed(&fixture).await;
    let fresh = fixture.accept(fixture.send_to(&["bob@example.com"])).await[0];
    let retried = soft_failed(&fixture).await;
    fixture.store.retry(fixture.server, retried).await.expect("the store works");
    let wished = fixture.in_secs(600);
    let send = fixture.send(fixture.server, &["c@example.com"], InitialState::Scheduled(wished), b"x");
    let scheduled = fixture.accept(send).await[0];
    let claimed_on_the_way = vec![(fixture.server, before), (fixture.server, fresh)];
    fixture.store.release(claimed_on_the_way).await.expect("the store works");
    fixture.clock.set(right.plus(Duration::from_secs(5)));
    assert!(fixture.store.is_clock_behind());
    let changed = fixture.store.pull_queue_back(PAUSE_MAX).await.expect("the store works");
    assert_eq!(changed, 3, "not the one that is right, nor the one its sender scheduled");
    let mut due: Vec<_> = fixture.claim_due().await.iter().map(|entry| entry.message_id).collect();
    due.sort_unstable();
    assert_eq!(due, [fresh, retried]);
    fixture.clock.advance(Duration::from_mins(1));
    let mut due: Vec<_> = fixture.claim_due().await.iter().map(|entry| entry.message_id).collect();
    due.sort_unstable();
    assert_eq!(due, [before, failed], "a pause after the last attempt");
    let entry = fixture.store.find_queued(scheduled).await.expect("the store works").expect("it is queued");
    assert_eq!(entry.due_at, wished);
    assert_eq!(fixture.store.pull_queue_back(PAUSE_MAX).await.expect("the store works"), 0);
}

async fn claimed_messages_keep_their_due_time(fixture: Fixture) {
    let right = go_ahead(&fixture);
    let id = fixture.claimed_message().await;
    let due_at = fixture.now();
    fixture.clock.set(right);
    assert_eq!(fixture.store.pull_queue_back(PAUSE_MAX).await.expect("the store works"), 0);
    let sent = Outcome { claimed_for: Some(due_at), ..fixture.outcome(id, Status::Sent) };
    assert!(fixture.finish(sent).await, "whoever has it can settle it");
}

async fn clock_that_was_ahead_is_noticed_after_a_restart(fixture: Fixture) {
    assert!(!fixture.store.is_clock_behind());
    let right = go_ahead(&fixture);
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    fixture.clock.set(right);
    let fixture = fixture.reopen().await;
    assert!(fixture.store.is_clock_behind());
    assert_eq!(fixture.store.pull_queue_back(PAUSE_MAX).await.expect("the store works"), 1);
    assert_eq!(fixture.claim_due().await.len(), 1);
}

async fn webhook_events_of_the_day_ahead_are_due_again(fixture: Fixture) {
    let webhook = webhooks::create(&fixture, EventSet::ALL).await;
    let right = go_ahead(&fixture);
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    fixture.clock.set(right);
    assert!(webhooks::claim(&fixture, &webhook).await.is_empty());
    let pauses = vec![Duration::from_mins(1), Duration::from_mins(5)];
    let changed = fixture.store.pull_webhooks_back(pauses.clone()).await.expect("the store works");
    assert_eq!(changed, 1);
    assert_eq!(webhooks::claim(&fixture, &webhook).await.len(), 1);
    // After attempts the pause of the last one is left.
    for (attempts, seconds) in [(1, 60), (2, 300), (9, 300)] {
        let due_at = fixture.in_secs(86_400).as_micros();
        fixture.execute(&format!("UPDATE webhook_queue SET attempts = {attempts}, due_at = {due_at}")).await;
        fixture.store.pull_webhooks_back(pauses.clone()).await.expect("the store works");
        let due_at = fixture.query_int("SELECT min(due_at) FROM webhook_queue").await;
        assert_eq!(Timestamp::from_micros(due_at), fixture.in_secs(seconds));
    }
}

async fn holds_gates_and_limits_of_the_day_ahead_end_in_time(fixture: Fixture) {
    let right = go_ahead(&fixture);
    let limited = |address| NewSend { hourly_limit: Some(1), ..fixture.send_to(&[address]) };
    fixture.accept(limited("a@example.com")).await;
    let held = fixture.accept(limited("b@example.com")).await[0];
    assert_eq!(fixture.message(held).await.status, Status::Held);
    let gate = NewGate {
        scope: GateScope::Everything,
        action: GateAction::Suspend,
        reason: "for an hour".into(),
        automatic: false,
        ends_at: Some(fixture.in_secs(3_600)),
    };
    fixture.store.set_gate(gate).await.expect("the store works");
    let tomorrow = fixture.now().as_secs() / 86_400;
    for day in [tomorrow - 1, tomorrow] {
        let row = format!("INSERT INTO source_days (source_id, day, sent, bounced) VALUES (1, {day}, 10, 1)");
        fixture.execute(&row).await;
    }
    fixture.clock.set(right);
    fixture.store.pull_rest_back(DAY).await.expect("the store works");
    assert_eq!(fixture.message(held).await.hold_expiry, Some(fixture.in_secs(7 * 24 * 3_600)));
    let gates = fixture.store.list_gates().await.expect("the store works");
    assert_eq!((gates[0].created_at, gates[0].ends_at), (right, Some(fixture.in_secs(3_600))));
    assert_eq!(fixture.query_int("SELECT count(*) FROM server_hours").await, 0, "no hour of tomorrow");
    assert_eq!(fixture.query_int("SELECT count(*) FROM source_days").await, 1);
    assert_eq!(fixture.query_int("SELECT sent + bounced FROM source_days").await, 22, "today has them all");
}
