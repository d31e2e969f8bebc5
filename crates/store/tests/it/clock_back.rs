//! Corrections after the clock was a day ahead and was set back.

use std::time::Duration;

use postroad_model::{EventSet, GateAction, GateScope, Status, Timestamp};
use postroad_store::{ClaimSkips, InitialState, NewGate, NewSend, Outcome};

use crate::fixture::{EngineFiles, Fixture, on_both_engines, simulator_domain};
use crate::webhooks;

on_both_engines!(
    messages_with_due_times_a_day_ahead_are_brought_forward,
    claimed_messages_keep_their_due_time,
    clock_that_was_ahead_is_noticed_after_a_restart,
    webhook_events_with_due_times_a_day_ahead_are_due_again,
    holds_gates_and_limits_begun_a_day_ahead_end_in_time,
    an_outbox_of_many_pages_is_corrected,
    holds_and_idempotency_keys_of_many_pages_end_in_time,
    a_message_that_was_due_before_its_send_at_is_scheduled_again,
    a_claimed_message_can_be_scheduled_again,
);

const DAY: Duration = Duration::from_hours(24);
const PAUSE_MAX: Duration = Duration::from_hours(7);

/// Sets the clock a day ahead; returns the right time.
fn set_a_day_ahead(fixture: &Fixture) -> Timestamp {
    let now = fixture.now();
    fixture.clock.advance(DAY);
    now
}

async fn create_soft_failed(fixture: &Fixture) -> postroad_model::MessageId {
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::SoftFail)).await);
    id
}

async fn messages_with_due_times_a_day_ahead_are_brought_forward(fixture: Fixture) {
    let before = create_soft_failed(&fixture).await;
    let right = set_a_day_ahead(&fixture);
    assert!(!fixture.store.is_clock_behind());
    let failed = create_soft_failed(&fixture).await;
    let fresh = fixture.accept(fixture.send_to(&["bob@example.com"])).await[0];
    let retried = create_soft_failed(&fixture).await;
    fixture.store.retry(fixture.server, retried, simulator_domain()).await.expect("the store works");
    let send_at = fixture.in_secs(600);
    let send = fixture.send(fixture.server, &["c@example.com"], InitialState::Scheduled(send_at), b"x");
    let scheduled = fixture.accept(send).await[0];
    // `create_soft_failed` claims every message that is due.
    let also_claimed = vec![(fixture.server, before), (fixture.server, fresh)];
    fixture.store.release_claims(also_claimed).await.expect("the store works");
    fixture.clock.set(right.plus(Duration::from_secs(5)));
    assert!(fixture.store.is_clock_behind());
    let changed = fixture.store.correct_due_times(PAUSE_MAX).await.expect("the store works");
    assert_eq!(changed, 3, "neither the message whose due time is right nor the scheduled one");
    let mut due: Vec<_> = fixture.claim_due().await.iter().map(|entry| entry.message_id).collect();
    due.sort_unstable();
    assert_eq!(due, [fresh, retried]);
    fixture.clock.advance(Duration::from_mins(1));
    let mut due: Vec<_> = fixture.claim_due().await.iter().map(|entry| entry.message_id).collect();
    due.sort_unstable();
    assert_eq!(due, [before, failed], "a pause after the last attempt");
    let entry = fixture.store.find_queued(scheduled).await.expect("the store works").expect("it is queued");
    assert_eq!(entry.due_at, send_at);
    assert_eq!(fixture.store.correct_due_times(PAUSE_MAX).await.expect("the store works"), 0);
}

async fn claimed_messages_keep_their_due_time(fixture: Fixture) {
    let right = set_a_day_ahead(&fixture);
    let id = fixture.accept_and_claim().await;
    let due_at = fixture.now();
    fixture.clock.set(right);
    assert_eq!(fixture.store.correct_due_times(PAUSE_MAX).await.expect("the store works"), 0);
    let sent = Outcome { claimed_due_at: Some(due_at), ..fixture.outcome(id, Status::Sent) };
    assert!(fixture.finish(sent).await, "its claim still holds");
}

async fn clock_that_was_ahead_is_noticed_after_a_restart(fixture: Fixture) {
    assert!(!fixture.store.is_clock_behind());
    let right = set_a_day_ahead(&fixture);
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    fixture.clock.set(right);
    let fixture = fixture.reopen().await;
    assert!(fixture.store.is_clock_behind());
    assert_eq!(fixture.store.correct_due_times(PAUSE_MAX).await.expect("the store works"), 1);
    assert_eq!(fixture.claim_due().await.len(), 1);
}

async fn webhook_events_with_due_times_a_day_ahead_are_due_again(fixture: Fixture) {
    let webhook = webhooks::create(&fixture, EventSet::ALL).await;
    let right = set_a_day_ahead(&fixture);
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    fixture.clock.set(right);
    assert!(webhooks::claim(&fixture, &webhook).await.is_empty());
    let pauses = vec![Duration::from_mins(1), Duration::from_mins(5)];
    let changed = fixture.store.correct_webhook_due_times(pauses.clone()).await.expect("the store works");
    assert_eq!(changed, 1);
    assert_eq!(webhooks::claim(&fixture, &webhook).await.len(), 1);
    // An event that was attempted becomes due after the pause that follows its last attempt.
    for (attempts, seconds) in [(1, 60), (2, 300), (9, 300)] {
        let due_at = fixture.in_secs(86_400).as_micros();
        fixture.execute(&format!("UPDATE webhook_queue SET attempts = {attempts}, due_at = {due_at}")).await;
        fixture.store.correct_webhook_due_times(pauses.clone()).await.expect("the store works");
        let due_at = fixture.query_int("SELECT min(due_at) FROM webhook_queue").await;
        assert_eq!(Timestamp::from_micros(due_at), fixture.in_secs(seconds));
    }
}

async fn holds_gates_and_limits_begun_a_day_ahead_end_in_time(fixture: Fixture) {
    let right = set_a_day_ahead(&fixture);
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
        let row = format!(
            "INSERT INTO source_days (source_id, provider, day, sent, bounced) VALUES (1, 'other', {day}, 10, 1)"
        );
        fixture.execute(&row).await;
    }
    fixture.clock.set(right);
    fixture.store.correct_holds_and_limits(DAY).await.expect("the store works");
    assert_eq!(fixture.message(held).await.hold_expiry, Some(fixture.in_secs(7 * 24 * 3_600)));
    let gates = fixture.store.list_gates().await.expect("the store works");
    assert_eq!((gates[0].created_at, gates[0].ends_at), (right, Some(fixture.in_secs(3_600))));
    assert_eq!(fixture.query_int("SELECT count(*) FROM server_hours").await, 0, "no hour of tomorrow");
    assert_eq!(fixture.query_int("SELECT count(*) FROM source_days").await, 1);
    let today = "SELECT sent + bounced FROM source_days";
    assert_eq!(fixture.query_int(today).await, 22, "today has the counts of both days");
}

/// Rows of three webhooks; the rows of the first and the last are due tomorrow.
async fn fill_outbox(fixture: &Fixture, rows: i64) {
    let (now, tomorrow) = (fixture.now().as_micros(), fixture.now().plus(DAY).as_micros());
    fixture
        .execute(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows})
             INSERT INTO webhook_queue (server_id, webhook_id, event_id, due_at, attempts)
             SELECT 1, 1 + i % 3, i, CASE WHEN i % 3 = 1 THEN {now} ELSE {tomorrow} END, i % 2 FROM n"
        ))
        .await;
}

async fn an_outbox_of_many_pages_is_corrected(fixture: Fixture) {
    fill_outbox(&fixture, 18_000).await;
    let pauses = vec![Duration::from_mins(1)];
    let changed = fixture.store.correct_webhook_due_times(pauses.clone()).await.expect("the store works");
    assert_eq!(changed, 12_000);
    let due = |seconds| {
        format!("SELECT count(*) FROM webhook_queue WHERE due_at = {}", fixture.in_secs(seconds).as_micros())
    };
    assert_eq!(fixture.query_int(&due(0)).await, 12_000, "rows that were due already, and rows never tried");
    assert_eq!(fixture.query_int(&due(60)).await, 6_000, "the pause after the first attempt");
    assert_eq!(fixture.store.correct_webhook_due_times(pauses).await.expect("the store works"), 0);
}

async fn holds_and_idempotency_keys_of_many_pages_end_in_time(fixture: Fixture) {
    let right = set_a_day_ahead(&fixture);
    let addresses: Vec<String> = (0..601).map(|n| format!("p{n}@example.com")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    fixture.accept(NewSend { hourly_limit: Some(1), ..fixture.send_to(&addresses) }).await;
    let ends = fixture.now().plus(DAY).as_micros();
    let keys = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
         INSERT INTO idempotency_keys (server_id, key, fingerprint, answer, expires_at)
         SELECT 1, 'k' || i, CAST('x' AS {}), '', {ends} FROM n",
        if matches!(fixture.engine_files, EngineFiles::Postgres(_)) { "BYTEA" } else { "BLOB" }
    );
    fixture.execute(&keys).await;
    fixture.clock.set(right);
    fixture.store.correct_holds_and_limits(DAY).await.expect("the store works");
    let (day, week) = (fixture.in_secs(24 * 3_600).as_micros(), fixture.in_secs(7 * 24 * 3_600).as_micros());
    let held = format!("SELECT count(*) FROM messages WHERE hold_expiry = {week}");
    assert_eq!(fixture.query_int(&held).await, 600);
    let kept = format!("SELECT count(*) FROM idempotency_keys WHERE expires_at = {day}");
    assert_eq!(fixture.query_int(&kept).await, 1_200);
}

/// Accepts a message to be sent in twelve hours, which becomes pending because the clock is a day ahead. Returns its
/// id and when it is to be sent.
async fn accept_and_promote_too_early(fixture: &Fixture) -> (postroad_model::MessageId, Timestamp) {
    let send_at = fixture.in_secs(12 * 3_600);
    let mut send = fixture.send(fixture.server, &["ann@example.com"], InitialState::Scheduled(send_at), b"x");
    send.info.options.send_at = Some(send_at);
    let id = fixture.accept(send).await[0];
    let right = set_a_day_ahead(fixture);
    assert_eq!(fixture.claim_due().await[0].message_id, id);
    assert_eq!(fixture.message(id).await.status, Status::Pending);
    fixture.clock.set(right);
    (id, send_at)
}

async fn assert_waits_until(fixture: &Fixture, id: postroad_model::MessageId, send_at: Timestamp) {
    assert_eq!(fixture.message(id).await.status, Status::Scheduled);
    let entry = fixture.store.find_queued(id).await.expect("the store works").expect("it is queued");
    assert_eq!(entry.due_at, send_at);
    let soon = send_at.minus(Duration::from_secs(1));
    fixture.clock.set(soon);
    let early =
        fixture.store.claim(fixture.in_secs(900), 10, ClaimSkips::default()).await.expect("the store works");
    assert_eq!(early, []);
    fixture.clock.set(send_at);
    assert_eq!(fixture.claim_due().await[0].message_id, id);
    assert_eq!(fixture.message(id).await.status, Status::Pending);
}

async fn a_message_that_was_due_before_its_send_at_is_scheduled_again(fixture: Fixture) {
    let (id, send_at) = accept_and_promote_too_early(&fixture).await;
    fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
    assert_eq!(fixture.store.correct_due_times(PAUSE_MAX).await.expect("the store works"), 1);
    assert_waits_until(&fixture, id, send_at).await;
}

async fn a_claimed_message_can_be_scheduled_again(fixture: Fixture) {
    let (id, send_at) = accept_and_promote_too_early(&fixture).await;
    fixture.store.postpone(fixture.server, id, send_at).await.expect("the store works");
    assert_waits_until(&fixture, id, send_at).await;
}
