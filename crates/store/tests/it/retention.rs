//! Removing what is old: in steps, and nothing that is still needed.

use std::time::Duration;

use postroad_model::{MessageId, Status, idgen};
use postroad_store::{Grain, OldRows};

use crate::counting::fold_all;
use crate::fixture::{Fixture, Place, on_both_engines};

on_both_engines!(
    old_messages_go_with_everything_about_them,
    the_oldest_live_message_is_known,
    uncounted_events_stay,
    bodies_go_before_their_messages,
    counters_go_by_their_time,
);

const WEEK: Duration = Duration::from_hours(7 * 24);
const ALL: [OldRows; 8] = [
    OldRows::Bodies,
    OldRows::Transcripts,
    OldRows::Deliveries,
    OldRows::Events,
    OldRows::EventsOfMessages,
    OldRows::Messages,
    OldRows::Sends,
    OldRows::WebhookAttempts,
];

async fn remove(fixture: &Fixture, which: OldRows, before: i64) -> u64 {
    let mut rows = 0;
    loop {
        let removed = fixture.store.remove_old_rows(which, before).await.expect("removing works");
        rows += removed.rows;
        if !removed.has_more {
            return rows;
        }
    }
}

/// Sent, with a transcript.
async fn sent(fixture: &Fixture, count: usize) -> Vec<MessageId> {
    let addresses: Vec<String> = (0..count).map(|number| format!("u{number}@example.com")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let ids = fixture.accept(fixture.send_to(&addresses)).await;
    fixture.store.claim(fixture.now(), 10_000, Vec::new()).await.expect("claiming works");
    let outcomes = ids.iter().map(|id| {
        let mut outcome = fixture.outcome(*id, Status::Sent);
        outcome.transcript = Some("220 hello".into());
        outcome
    });
    let settled = fixture.store.finish(outcomes.collect()).await.expect("finishing works");
    assert!(settled.into_iter().all(|settled| settled));
    ids
}

async fn old_messages_go_with_everything_about_them(fixture: Fixture) {
    // More than one step.
    sent(&fixture, 1_200).await;
    fixture.clock.advance(3 * WEEK);
    let young = sent(&fixture, 2).await;
    fold_all(&fixture).await;
    let before = idgen::first_id_at(fixture.now().minus(WEEK));
    for which in ALL {
        remove(&fixture, which, before).await;
    }
    let mut left = fixture.row_counts().await;
    left.insert("delivery_transcripts", fixture.query_int("SELECT count(*) FROM delivery_transcripts").await);
    let expected = [
        ("bodies", 1),
        ("deliveries", 2),
        ("delivery_transcripts", 2),
        ("events", 4),
        ("idempotency_keys", 0),
        ("messages", 2),
        ("queue", 0),
        ("sends", 1),
    ];
    assert_eq!(left, expected.into());
    assert_eq!(fixture.message(young[0]).await.status, Status::Sent);
    // What happened is still counted.
    let totals = fixture
        .store
        .list_totals(fixture.server, Grain::Day, 0, i64::MAX / 2_000_000)
        .await
        .expect("the store answers");
    let sent: u64 = totals.iter().map(|row| row.sums.counts.of(postroad_store::Metric::Sent)).sum();
    assert_eq!(sent, 1_202);
}

async fn the_oldest_live_message_is_known(fixture: Fixture) {
    assert_eq!(fixture.store.find_oldest_live().await.expect("the store answers"), None);
    sent(&fixture, 1).await;
    assert_eq!(fixture.store.find_oldest_live().await.expect("the store answers"), None);
    let held = fixture.claimed_message().await;
    assert!(fixture.finish(fixture.outcome(held, Status::Held)).await);
    let queued = fixture.accept(fixture.send_to(&["b@example.com"])).await[0];
    assert!(held < queued);
    assert_eq!(fixture.store.find_oldest_live().await.expect("the store answers"), Some(held.0));
    fixture.store.cancel(fixture.server, held).await.expect("the store answers");
    assert_eq!(fixture.store.find_oldest_live().await.expect("the store answers"), Some(queued.0));
}

async fn uncounted_events_stay(fixture: Fixture) {
    sent(&fixture, 3).await;
    fixture.clock.advance(3 * WEEK);
    let before = idgen::first_id_at(fixture.now());
    assert!(fixture.store.has_uncounted_before(before).await.expect("the store answers"));
    assert_eq!(remove(&fixture, OldRows::EventsOfMessages, before).await, 0);
    if let Place::Sqlite(_) = fixture.place {
        // On PostgreSQL whoever removes has to ask first.
        assert_eq!(remove(&fixture, OldRows::Events, before).await, 0);
    }
    fold_all(&fixture).await;
    assert!(!fixture.store.has_uncounted_before(before).await.expect("the store answers"));
    assert_eq!(remove(&fixture, OldRows::EventsOfMessages, before).await, 6);
}

async fn bodies_go_before_their_messages(fixture: Fixture) {
    // One in a row, one in a file.
    let noise: Vec<u8> = (0..200_000).map(|_| rand::random()).collect();
    let small = fixture.accept(fixture.send_to(&["a@example.com"])).await[0];
    let state = postroad_store::InitialState::Pending;
    let large = fixture.accept(fixture.send(fixture.server, &["b@example.com"], state, &noise)).await[0];
    fixture.clock.advance(3 * WEEK);
    remove(&fixture, OldRows::Bodies, idgen::first_id_at(fixture.now())).await;
    for id in [small, large] {
        let message = fixture.message(id).await;
        let send = &message.send;
        assert_eq!(
            fixture.store.find_body(fixture.server, send.id, send.size).await.expect("the store answers"),
            None
        );
    }
    if let Place::Sqlite(folder) = &fixture.place {
        let mut files = Vec::new();
        for folder in std::fs::read_dir(folder.path().join("data/bodies")).expect("a folder") {
            files.extend(std::fs::read_dir(folder.expect("an entry").path()).expect("a folder"));
        }
        assert!(files.is_empty(), "{files:?}");
    }
}

async fn counters_go_by_their_time(fixture: Fixture) {
    sent(&fixture, 2).await;
    fixture.clock.advance(2 * WEEK);
    sent(&fixture, 1).await;
    fold_all(&fixture).await;
    let before = Grain::Day.start(fixture.now());
    let count = async |text: &str| fixture.query_int(text).await;
    let all = count("SELECT count(*) FROM counters").await;
    fixture.store.remove_old_counters(Grain::Minute, before).await.expect("the store answers");
    assert_eq!(count("SELECT count(*) FROM counters").await, all - 1);
    for grain in [Grain::Quarter, Grain::Day] {
        fixture.store.remove_old_counters(grain, before).await.expect("the store answers");
    }
    fixture.store.remove_old_days(before).await.expect("the store answers");
    // By minute, quarter and day; the totals by quarter and day.
    assert_eq!(count("SELECT count(*) FROM counters").await, 5);
    assert_eq!(count("SELECT count(*) FROM recipient_domain_days").await, 1);
    assert_eq!(count("SELECT count(*) FROM counter_dimensions").await, 1);
    fixture.clock.advance(2 * WEEK);
    let before = Grain::Day.start(fixture.now());
    for grain in Grain::ALL {
        fixture.store.remove_old_counters(grain, before).await.expect("the store answers");
    }
    fixture.store.remove_old_days(before).await.expect("the store answers");
    for table in ["counters", "recipient_domain_days", "counter_dimensions"] {
        assert_eq!(count(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
}
