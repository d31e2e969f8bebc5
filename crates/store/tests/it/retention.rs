//! Removal of expired data: in steps, and nothing that is still needed.

use std::time::Duration;

use postroad_model::{EventKind, EventSet, MessageId, ServerId, Status, idgen};
use postroad_store::{Breakdown, ClaimSkips, Grain, InitialState, OldRows, Outcome, Removal};

use crate::counting::count_all_events;
use crate::fixture::{EngineFiles, Fixture, on_both_engines};
use crate::webhooks;

on_both_engines!(
    old_messages_are_removed_with_everything_about_them,
    queued_messages_keep_only_data_of_their_server,
    uncounted_events_stay_with_their_messages,
    pending_webhook_events_stay_with_their_message,
    late_event_that_a_webhook_waits_for_keeps_an_old_message,
    bodies_are_removed_before_their_messages,
    a_server_may_keep_its_mail_for_a_shorter_time,
    a_body_that_is_kept_keeps_its_message_until_the_next_round,
    sends_without_a_body_are_not_examined_again,
    counters_are_removed_by_age,
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
    let mut removal = fixture.store.begin_removal(which, before).await.expect("the store answers");
    loop {
        let removed = fixture.store.remove_old_rows(&mut removal).await.expect("removing works");
        rows += removed.rows;
        if !removed.has_more {
            return rows;
        }
    }
}

/// Removes all rows with ids below `before`, as the retention task does.
async fn remove_all(fixture: &Fixture, before: i64) {
    for which in ALL {
        remove(fixture, which, before).await;
    }
}

async fn send_messages(fixture: &Fixture, count: usize) -> Vec<MessageId> {
    send_messages_of(fixture, fixture.server, count).await
}

/// Accepts messages of a server and records them as sent, each with a transcript.
async fn send_messages_of(fixture: &Fixture, server: ServerId, count: usize) -> Vec<MessageId> {
    let addresses: Vec<String> = (0..count).map(|number| format!("u{number}@example.com")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let ids =
        fixture.accept(fixture.send(server, &addresses, InitialState::Pending, b"Subject: a\r\n\r\n")).await;
    fixture.store.claim(fixture.now(), 10_000, ClaimSkips::default()).await.expect("claiming works");
    let outcomes = ids.iter().map(|id| {
        let mut outcome = Outcome { server_id: server, ..fixture.outcome(*id, Status::Sent) };
        outcome.transcript = Some("220 hello".into());
        outcome
    });
    let settled = fixture.store.finish(outcomes.collect()).await.expect("finishing works");
    assert!(settled.into_iter().all(|settled| settled));
    ids
}

async fn old_messages_are_removed_with_everything_about_them(fixture: Fixture) {
    // More than one step.
    send_messages(&fixture, 1_200).await;
    fixture.clock.advance(3 * WEEK);
    let young = send_messages(&fixture, 2).await;
    count_all_events(&fixture).await;
    let before = idgen::first_id_at(fixture.now().minus(WEEK));
    remove_all(&fixture, before).await;
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
    // The counters still include the removed events.
    let totals = fixture
        .store
        .list_counters(fixture.server, (Grain::Day, Breakdown::Total), vec![(0, i64::MAX / 2_000_000)], 1_000)
        .await
        .expect("the store answers");
    let sent: u64 = totals.iter().map(|row| row.sums.counts.of(postroad_store::Metric::Sent)).sum();
    assert_eq!(sent, 1_202);
}

/// Numbers of a server's sends, messages, deliveries, transcripts and events.
async fn rows_of(fixture: &Fixture, server: ServerId) -> [i64; 5] {
    let mut rows = [0; 5];
    let tables = ["sends", "messages", "deliveries", "delivery_transcripts", "events"];
    for (rows, table) in rows.iter_mut().zip(tables) {
        let text = format!("SELECT count(*) FROM {table} WHERE server_id = {}", server.0);
        *rows = fixture.query_int(&text).await;
    }
    rows
}

async fn queued_messages_keep_only_data_of_their_server(fixture: Fixture) {
    send_messages(&fixture, 2).await;
    fixture.clock.advance(Duration::from_hours(2));
    let held = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(held, Status::Held)).await);
    // The other server sends in the same week and in a later one.
    send_messages_of(&fixture, fixture.other_server, 3).await;
    fixture.clock.advance(3 * WEEK);
    send_messages_of(&fixture, fixture.other_server, 3).await;
    fixture.clock.advance(3 * WEEK);
    count_all_events(&fixture).await;
    remove_all(&fixture, idgen::first_id_at(fixture.now())).await;
    assert_eq!(rows_of(&fixture, fixture.other_server).await, [0; 5]);
    // The held message stays with its send and delivery; older messages are removed. Its events are removed by their
    // own age.
    assert_eq!(rows_of(&fixture, fixture.server).await, [1, 1, 1, 0, 0]);
    assert_eq!(fixture.query_int("SELECT count(*) FROM bodies").await, 1);
    fixture.store.cancel(fixture.server, held).await.expect("its delivery can be stored");
    count_all_events(&fixture).await;
    fixture.clock.advance(2 * WEEK);
    remove_all(&fixture, idgen::first_id_at(fixture.now())).await;
    assert_eq!(rows_of(&fixture, fixture.server).await, [0; 5]);
    assert_eq!(fixture.query_int("SELECT count(*) FROM bodies").await, 0);
}

async fn uncounted_events_stay_with_their_messages(fixture: Fixture) {
    send_messages(&fixture, 3).await;
    fixture.clock.advance(3 * WEEK);
    let before = idgen::first_id_at(fixture.now());
    remove_all(&fixture, before).await;
    assert_eq!(rows_of(&fixture, fixture.server).await, [1, 3, 0, 0, 6]);
    count_all_events(&fixture).await;
    remove_all(&fixture, before).await;
    assert_eq!(rows_of(&fixture, fixture.server).await, [0; 5]);
}

async fn pending_webhook_events_stay_with_their_message(fixture: Fixture) {
    let webhook = webhooks::create(&fixture, EventSet::ALL).await;
    let id = send_messages(&fixture, 1).await[0];
    send_messages_of(&fixture, fixture.other_server, 1).await;
    count_all_events(&fixture).await;
    fixture.clock.advance(3 * WEEK);
    let before = idgen::first_id_at(fixture.now());
    remove_all(&fixture, before).await;
    assert_eq!(rows_of(&fixture, fixture.server).await, [1, 1, 0, 0, 2]);
    assert_eq!(rows_of(&fixture, fixture.other_server).await, [0; 5]);
    let works = webhooks::claim_some(&fixture, &webhook, 10).await;
    assert_eq!(works.len(), 2);
    assert!(works.iter().all(|work| work.event.message.as_ref().is_some_and(|message| message.id == id)));
    // Outbox rows whose events no longer exist do not block other rows.
    fixture.execute("DELETE FROM events").await;
    fixture.clock.advance(Duration::from_mins(5));
    assert_eq!(fixture.query_int("SELECT count(*) FROM webhook_queue").await, 2);
    send_messages(&fixture, 1).await;
    assert_eq!(webhooks::claim_some(&fixture, &webhook, 2).await.len(), 2, "those that exist");
    webhooks::claim_some(&fixture, &webhook, 10).await;
    assert_eq!(fixture.query_int("SELECT count(*) FROM webhook_queue").await, 2);
}

async fn late_event_that_a_webhook_waits_for_keeps_an_old_message(fixture: Fixture) {
    let old = send_messages(&fixture, 1).await[0];
    send_messages(&fixture, 1).await;
    fixture.clock.advance(3 * WEEK);
    let webhook = webhooks::create(&fixture, EventSet::ALL).await;
    send_messages(&fixture, 1).await;
    let (server, late) = (fixture.server.0, fixture.store.ids().expect("a node has ids").next());
    let text = format!(
        "INSERT INTO events (server_id, id, message_id, seq, kind, at, test, data)
         VALUES ({server}, {late}, {}, 3, '{}', 0, 0, '{{}}');
         INSERT INTO webhook_queue (server_id, webhook_id, event_id, due_at, attempts)
         VALUES ({server}, {}, {late}, 0, 0)",
        old.0,
        EventKind::Unsubscribed.as_str(),
        webhook.id.0
    );
    fixture.execute(&text).await;
    count_all_events(&fixture).await;
    remove_all(&fixture, idgen::first_id_at(fixture.now().minus(WEEK))).await;
    // Two events of the young message, and the late event.
    assert_eq!(fixture.query_int("SELECT count(*) FROM events").await, 3);
    let works = webhooks::claim_some(&fixture, &webhook, 1).await;
    assert_eq!(works[0].event.id.0, late);
    assert_eq!(works[0].event.message.as_ref().map(|message| message.id), Some(old));
}

async fn bodies_are_removed_before_their_messages(fixture: Fixture) {
    // One body is stored in a row, the other in a file.
    let noise: Vec<u8> = (0..200_000).map(|_| rand::random()).collect();
    let small = fixture.accept(fixture.send_to(&["a@example.com"])).await[0];
    let state = InitialState::Pending;
    let large = fixture.accept(fixture.send(fixture.server, &["b@example.com"], state, &noise)).await[0];
    fixture.claim_due().await;
    for id in [small, large] {
        assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    }
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
    if let EngineFiles::Sqlite(folder) = &fixture.engine_files {
        let mut files = Vec::new();
        for folder in std::fs::read_dir(folder.path().join("data/bodies")).expect("a folder") {
            files.extend(std::fs::read_dir(folder.expect("an entry").path()).expect("a folder"));
        }
        assert!(files.is_empty(), "{files:?}");
    }
}

/// Like `remove`, for one server.
async fn remove_of(fixture: &Fixture, which: OldRows, before: i64) -> Removal {
    remove_of_after(fixture, which, before, None).await
}

/// Like `remove_of`, after the removal `bodies`.
async fn remove_of_after(
    fixture: &Fixture,
    which: OldRows,
    before: i64,
    bodies: Option<&Removal>,
) -> Removal {
    let firsts = vec![(fixture.server, before)];
    let mut removal =
        fixture.store.begin_removal_of_servers(which, firsts, bodies).await.expect("the store answers");
    while fixture.store.remove_old_rows(&mut removal).await.expect("removing works").has_more {}
    removal
}

/// Rows, besides bodies, that a server's own retention removes, in this order.
const OF_SERVER: [OldRows; 5] =
    [OldRows::Transcripts, OldRows::Deliveries, OldRows::EventsOfMessages, OldRows::Messages, OldRows::Sends];

async fn a_body_that_is_kept_keeps_its_message_until_the_next_round(fixture: Fixture) {
    let waiting = fixture.accept_and_claim().await;
    fixture.clock.advance(Duration::from_hours(2));
    send_messages(&fixture, 1).await;
    fixture.clock.advance(Duration::from_hours(2));
    let before = idgen::first_id_at(fixture.now());
    let bodies = remove_of(&fixture, OldRows::Bodies, before).await;
    assert_eq!(fixture.query_int("SELECT count(*) FROM bodies").await, 2);
    // The waiting message is sent in the middle of the round.
    assert!(fixture.finish(fixture.outcome(waiting, Status::Sent)).await);
    count_all_events(&fixture).await;
    for which in OF_SERVER {
        remove_of_after(&fixture, which, before, Some(&bodies)).await;
    }
    assert_eq!(rows_of(&fixture, fixture.server).await[..2], [2, 2]);
    let bodies = remove_of(&fixture, OldRows::Bodies, before).await;
    for which in OF_SERVER {
        remove_of_after(&fixture, which, before, Some(&bodies)).await;
    }
    assert_eq!(rows_of(&fixture, fixture.server).await, [0; 5]);
    assert_eq!(fixture.query_int("SELECT count(*) FROM bodies").await, 0);
}

async fn a_server_may_keep_its_mail_for_a_shorter_time(fixture: Fixture) {
    send_messages(&fixture, 2).await;
    // More than `bounds::IDS_PER_HOUR` (one hour of ids) apart, so that the next message does not keep these.
    fixture.clock.advance(Duration::from_hours(2));
    send_messages(&fixture, 1).await;
    send_messages_of(&fixture, fixture.other_server, 3).await;
    count_all_events(&fixture).await;
    fixture.clock.advance(Duration::from_secs(1));
    let before = idgen::first_id_at(fixture.now().minus(Duration::from_hours(1)));
    remove_of(&fixture, OldRows::Bodies, before).await;
    assert_eq!(fixture.query_int("SELECT count(*) FROM bodies").await, 2, "one was removed");
    assert_eq!(rows_of(&fixture, fixture.server).await, [2, 3, 3, 3, 6]);
    for which in ALL.into_iter().filter(|which| !matches!(which, OldRows::Events | OldRows::WebhookAttempts))
    {
        remove_of(&fixture, which, before).await;
    }
    assert_eq!(rows_of(&fixture, fixture.server).await, [1, 1, 1, 1, 2]);
    assert_eq!(rows_of(&fixture, fixture.other_server).await, [1, 3, 3, 3, 6]);
    let waiting = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    fixture.clock.advance(Duration::from_hours(3));
    for which in ALL.into_iter().filter(|which| !matches!(which, OldRows::Events | OldRows::WebhookAttempts))
    {
        remove_of(&fixture, which, idgen::first_id_at(fixture.now())).await;
    }
    assert_eq!(fixture.message(waiting).await.status, Status::Pending, "it is still to be sent");
}

async fn sends_without_a_body_are_not_examined_again(fixture: Fixture) {
    send_messages(&fixture, 1).await;
    fixture.clock.advance(Duration::from_hours(3));
    let steps = async || {
        let firsts = vec![(fixture.server, idgen::first_id_at(fixture.now()))];
        let begun = fixture.store.begin_removal_of_servers(OldRows::Bodies, firsts, None).await;
        let (mut removal, mut steps) = (begun.expect("the store answers"), 1);
        while fixture.store.remove_old_rows(&mut removal).await.expect("removing works").has_more {
            steps += 1;
        }
        steps
    };
    let first = steps().await;
    assert_eq!(fixture.query_int("SELECT count(*) FROM bodies").await, 0);
    assert!(steps().await < first);
    // Bodies that came since are removed, too.
    send_messages(&fixture, 1).await;
    fixture.clock.advance(Duration::from_hours(3));
    steps().await;
    assert_eq!(fixture.query_int("SELECT count(*) FROM bodies").await, 0);
}

async fn counters_are_removed_by_age(fixture: Fixture) {
    send_messages(&fixture, 2).await;
    // The older counters are then in another block of days.
    fixture.clock.advance(5 * WEEK);
    send_messages(&fixture, 1).await;
    count_all_events(&fixture).await;
    let before = Grain::Day.start(fixture.now());
    let count = async |text: &str| fixture.query_int(text).await;
    let all = count("SELECT count(*) FROM counters").await;
    fixture.store.remove_old_counters(Grain::Minute, before).await.expect("the store answers");
    // 12 breakdowns: the total, nine for a single dimension, one for all nine, and one without those of attempts.
    assert_eq!(count("SELECT count(*) FROM counters").await, all - 12);
    for grain in [Grain::Quarter, Grain::Hour, Grain::Day] {
        fixture.store.remove_old_counters(grain, before).await.expect("the store answers");
    }
    fixture.store.remove_old_day_counts(before).await.expect("the store answers");
    assert_eq!(count("SELECT count(*) FROM counters").await, 12 * 4);
    assert_eq!(count("SELECT count(*) FROM recipient_domains").await, 1);
    // One set of values for each breakdown except the total.
    assert_eq!(count("SELECT count(*) FROM counter_dimensions").await, 11);
    fixture.clock.advance(5 * WEEK);
    let before = Grain::Day.start(fixture.now());
    for grain in Grain::ALL {
        fixture.store.remove_old_counters(grain, before).await.expect("the store answers");
    }
    fixture.store.remove_old_day_counts(before).await.expect("the store answers");
    for table in ["counters", "recipient_domains", "counter_dimensions"] {
        assert_eq!(count(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
}
