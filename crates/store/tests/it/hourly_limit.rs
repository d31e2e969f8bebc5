//! The hourly limit of a server: messages beyond it are held, not refused.

use std::time::Duration;

use postroad_model::{EventKind, MessageId, Status};
use postroad_store::{Accepted, InitialState, NewSend};

use crate::fixture::{EngineFiles, Fixture, connect, is_unavailable, on_both_engines};

on_both_engines!(
    messages_beyond_the_limit_are_held,
    next_hour_starts_from_zero,
    exempt_and_test_messages_do_not_count,
    servers_are_counted_separately,
    without_a_limit_nothing_is_counted,
    concurrent_sends_keep_the_limit,
);

fn limited_send(fixture: &Fixture, addresses: &[&str], limit: u32) -> NewSend {
    NewSend { hourly_limit: Some(limit), ..fixture.send_to(addresses) }
}

async fn statuses(fixture: &Fixture, ids: &[MessageId]) -> Vec<Status> {
    let mut statuses = Vec::new();
    for id in ids {
        statuses.push(fixture.message(*id).await.status);
    }
    statuses
}

async fn messages_beyond_the_limit_are_held(fixture: Fixture) {
    let first = fixture.accept(limited_send(&fixture, &["a@example.com", "b@example.com"], 3)).await;
    assert_eq!(statuses(&fixture, &first).await, [Status::Pending, Status::Pending]);
    let second = fixture.accept(limited_send(&fixture, &["c@example.com", "d@example.com"], 3)).await;
    assert_eq!(statuses(&fixture, &second).await, [Status::Pending, Status::Held]);
    let held = fixture.message(second[1]).await;
    assert_eq!(held.hold_expiry, Some(fixture.in_secs(7 * 24 * 3_600)));
    let deliveries = fixture.deliveries(second[1]).await;
    assert_eq!(deliveries[0].record.details, "The hourly limit of 3 messages is reached");
    assert_eq!(fixture.event_kinds(second[1]).await, [EventKind::Accepted, EventKind::Held]);
    assert_eq!(fixture.claim_due().await.len(), 3);
}

async fn next_hour_starts_from_zero(fixture: Fixture) {
    for _ in 0..3 {
        let first = fixture.accept(limited_send(&fixture, &["a@example.com"], 1)).await;
        let second = fixture.accept(limited_send(&fixture, &["b@example.com"], 1)).await;
        assert_eq!(statuses(&fixture, &[first[0], second[0]]).await, [Status::Pending, Status::Held]);
        fixture.clock.advance(Duration::from_hours(2));
    }
    assert_eq!(fixture.query_int("SELECT count(*) FROM server_hours").await, 1, "old hours are forgotten");
}

async fn exempt_and_test_messages_do_not_count(fixture: Fixture) {
    let mut exempt = limited_send(&fixture, &["a@sim.postroad.test", "b@sim.postroad.test"], 1);
    exempt.recipients.iter_mut().for_each(|recipient| recipient.exempt = true);
    let ids = fixture.accept(exempt).await;
    assert_eq!(statuses(&fixture, &ids).await, [Status::Pending, Status::Pending]);
    let state = InitialState::TestSent { details: "test".into() };
    let test = fixture.send(fixture.server, &["a@example.com"], state, b"x");
    let id = fixture.accept(NewSend { hourly_limit: Some(1), ..test }).await;
    assert_eq!(statuses(&fixture, &id).await, [Status::Sent]);
    let id = fixture.accept(limited_send(&fixture, &["a@example.com"], 1)).await;
    assert_eq!(statuses(&fixture, &id).await, [Status::Pending]);
}

async fn servers_are_counted_separately(fixture: Fixture) {
    fixture.accept(limited_send(&fixture, &["a@example.com"], 1)).await;
    let other = fixture.send(fixture.other_server, &["a@example.com"], InitialState::Pending, b"x");
    let id = fixture.accept(NewSend { hourly_limit: Some(1), ..other }).await[0];
    let message = fixture.store.find_message(fixture.other_server, id).await.expect("the store works");
    assert_eq!(message.expect("it is there").status, Status::Pending);
}

async fn without_a_limit_nothing_is_counted(fixture: Fixture) {
    fixture.accept(fixture.send_to(&["a@example.com"])).await;
    assert_eq!(fixture.query_int("SELECT count(*) FROM server_hours").await, 0);
}

async fn concurrent_sends_keep_the_limit(fixture: Fixture) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..60 {
        let mut send = limited_send(&fixture, &["a@example.com", "b@example.com"], 37);
        if n % 2 == 0 {
            // PostgreSQL accepts sends with an idempotency key in another way.
            send.idempotency = fixture.send_with_key(&format!("k{n}"), 1, "a").idempotency;
        }
        let store = fixture.store.clone();
        tasks.spawn(async move { store.accept(send).await.expect("the store works") });
    }
    tasks.join_all().await;
    assert_eq!(fixture.claim_due().await.len(), 37);
    assert_eq!(fixture.query_int("SELECT count(*) FROM messages WHERE status = 'Held'").await, 120 - 37);
}

/// Another transaction holds the row of the hour: that is "try again", not "this idempotency key is in use".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accept_is_unavailable_while_the_row_of_the_hour_is_locked_and_other_servers_go_on() {
    let fixture = Fixture::postgres().await;
    fixture.accept(limited_send(&fixture, &["a@example.com"], 10)).await;
    let EngineFiles::Postgres(database) = &fixture.engine_files else { unreachable!("it is PostgreSQL") };
    let other = connect(database.url()).await;
    other.batch_execute("BEGIN; SELECT * FROM server_hours FOR UPDATE").await.expect("the row is there");
    let mut with_key = limited_send(&fixture, &["b@example.com"], 10);
    with_key.idempotency = fixture.send_with_key("k", 1, "a").idempotency;
    let others = fixture.send(fixture.other_server, &["c@example.com"], InitialState::Pending, b"x");
    let (with_key, others) = tokio::join!(fixture.store.accept(with_key), fixture.store.accept(others));
    assert!(is_unavailable(&with_key), "{with_key:?}");
    others.expect("another server's mail is accepted");
    other.batch_execute("ROLLBACK").await.expect("the connection works");
    let mut again = limited_send(&fixture, &["b@example.com"], 10);
    again.idempotency = fixture.send_with_key("k", 1, "a").idempotency;
    let accepted = fixture.store.accept(again).await.expect("the store works");
    assert!(matches!(accepted, Accepted::Stored(_)), "{accepted:?}");
}
