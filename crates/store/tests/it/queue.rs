//! Claims of queued messages, and how they end: `claim`, `finish` and `release_claims`.

use std::collections::HashSet;
use std::time::Duration;

use postroad_model::{EventKind, MessageId, Status};
use postroad_store::{ClaimSkips, ClaimedEntry, NewDelivery};
use postroad_testkit::eventually_within;

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    nothing_is_claimed_twice,
    claims_come_in_the_order_they_are_due,
    sent_message_leaves_the_queue,
    soft_failure_is_queued_again,
    failure_that_does_not_count_keeps_the_number_of_attempts,
    soft_failure_without_a_next_attempt_stays_queued,
    hard_failure_ends_the_message,
    held_outcome_leaves_the_queue,
    second_outcome_of_one_claim_is_refused,
    outcome_without_a_claim_is_refused,
    impossible_outcome_writes_nothing,
    outcomes_of_a_batch_are_settled_one_by_one,
    delivery_is_read_back_whole,
    released_message_is_claimed_again,
    claims_end_with_the_process,
    claim_of_a_disconnected_caller_is_released,
    outcome_of_a_disconnected_caller_is_stored_whole_or_not_at_all,
    claim_without_due_messages_is_empty,
    servers_without_room_are_skipped_until_they_have_some,
);

async fn nothing_is_claimed_twice(fixture: Fixture) {
    for _ in 0..10 {
        let addresses: Vec<String> = (0..30).map(|n| format!("p{n}@example.com")).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        fixture.accept(fixture.send_to(&addresses)).await;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (store, now) = (fixture.store.clone(), fixture.now());
        tasks.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claimed = store.claim(now, 7, ClaimSkips::default()).await.expect("the store works");
                assert!(claimed.len() <= 7);
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed.into_iter().map(|entry| entry.message_id));
            }
        });
    }
    let claimed: Vec<MessageId> = tasks.join_all().await.concat();
    assert_eq!(claimed.len(), 300);
    assert_eq!(claimed.iter().collect::<HashSet<_>>().len(), 300);
}

async fn claims_come_in_the_order_they_are_due(fixture: Fixture) {
    let mut expected = Vec::new();
    for (number, seconds) in [50, 10, 40, 10, 30].into_iter().enumerate() {
        // Two servers: the order is by time, not by server.
        let server = if number % 2 == 0 { fixture.other_server } else { fixture.server };
        let id = fixture.accept(fixture.send_due_in(server, seconds)).await[0];
        expected.push((seconds, id));
    }
    expected.sort_unstable();
    let by = fixture.in_secs(40);
    let first = fixture.store.claim(by, 2, ClaimSkips::default()).await.expect("the store works");
    let rest = fixture.store.claim(by, 100, ClaimSkips::default()).await.expect("the store works");
    let claimed: Vec<MessageId> = first.iter().chain(&rest).map(|entry| entry.message_id).collect();
    assert_eq!((first.len(), rest.len()), (2, 2), "the one due after {by} is not claimed");
    assert_eq!(claimed, expected[..4].iter().map(|(_, id)| *id).collect::<Vec<_>>());
}

async fn sent_message_leaves_the_queue(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    fixture.clock.advance(Duration::from_secs(3));
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    let message = fixture.message(id).await;
    assert_eq!((message.status, message.next_attempt_at), (Status::Sent, None));
    assert_eq!(message.last_delivery_at, Some(fixture.now()));
    assert_eq!(fixture.event_kinds(id).await, [EventKind::Accepted, EventKind::Delivered]);
    let event = &fixture.events(id).await[1];
    assert_eq!((event.data.as_str(), event.at), (r#"{"status":"Sent"}"#, fixture.now()));
    assert_eq!(fixture.deliveries(id).await.len(), 1);
    fixture.clock.advance(Duration::from_secs(1_000_000));
    assert!(fixture.claim_due().await.is_empty());
    assert_eq!(fixture.row_counts().await["queue"], 0);
}

async fn soft_failure_is_queued_again(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    for attempt in 1..=3 {
        assert!(fixture.finish(fixture.outcome(id, Status::SoftFail)).await);
        let message = fixture.message(id).await;
        assert_eq!((message.status, message.next_attempt_at), (Status::SoftFail, Some(fixture.in_secs(60))));
        assert!(fixture.claim_due().await.is_empty(), "claimed before it is due");
        fixture.clock.advance(Duration::from_mins(1));
        let claimed = fixture.claim_due().await;
        assert_eq!((claimed[0].message_id, claimed[0].attempts), (id, attempt));
        assert_eq!(claimed[0].due_at, fixture.now());
    }
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    let kinds = fixture.event_kinds(id).await;
    assert_eq!(kinds[1..4], [EventKind::Delayed; 3]);
    assert_eq!((kinds[0], kinds[4], kinds.len()), (EventKind::Accepted, EventKind::Delivered, 5));
    let deliveries = fixture.deliveries(id).await;
    let statuses: Vec<Status> = deliveries.iter().map(|delivery| delivery.record.status).collect();
    assert_eq!(statuses, [Status::SoftFail, Status::SoftFail, Status::SoftFail, Status::Sent]);
    assert!(deliveries.windows(2).all(|pair| pair[0].id < pair[1].id));
}

async fn failure_that_does_not_count_keeps_the_number_of_attempts(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    for (counts, attempts) in [(false, 0), (true, 1), (false, 1)] {
        let mut outcome = fixture.outcome(id, Status::SoftFail);
        outcome.counts_as_attempt = counts;
        assert!(fixture.finish(outcome).await);
        fixture.clock.advance(Duration::from_mins(1));
        assert_eq!(fixture.claim_due().await[0].attempts, attempts);
    }
}

async fn soft_failure_without_a_next_attempt_stays_queued(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    let mut outcome = fixture.outcome(id, Status::SoftFail);
    outcome.delivery.next_attempt_at = None;
    assert!(fixture.finish(outcome).await);
    assert_eq!(fixture.claim_due().await[0].message_id, id);
}

async fn hard_failure_ends_the_message(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::HardFail)).await);
    assert_eq!(fixture.message(id).await.status, Status::HardFail);
    assert_eq!(fixture.row_counts().await["queue"], 0);
    assert!(!fixture.finish(fixture.outcome(id, Status::Sent)).await);
    assert_eq!(fixture.message(id).await.status, Status::HardFail);
}

async fn held_outcome_leaves_the_queue(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::Held)).await);
    let message = fixture.message(id).await;
    assert_eq!((message.status, message.next_attempt_at), (Status::Held, None));
    assert_eq!(fixture.event_kinds(id).await, [EventKind::Accepted, EventKind::Held]);
}

async fn second_outcome_of_one_claim_is_refused(fixture: Fixture) {
    for status in [Status::Sent, Status::SoftFail] {
        let id = fixture.accept_and_claim().await;
        let both = vec![fixture.outcome(id, status), fixture.outcome(id, status)];
        assert_eq!(fixture.store.finish(both).await.expect("the store works"), [true, false], "{status}");
        assert!(!fixture.finish(fixture.outcome(id, status)).await, "{status}");
        assert_eq!(fixture.deliveries(id).await.len(), 1, "{status}");
        assert_eq!(fixture.event_kinds(id).await.len(), 2, "{status}");
    }
    // Concurrent outcomes.
    let id = fixture.accept_and_claim().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let (store, outcome) = (fixture.store.clone(), fixture.outcome(id, Status::SoftFail));
        tasks.spawn(async move { store.finish(vec![outcome]).await.expect("the store works")[0] });
    }
    assert_eq!(tasks.join_all().await.into_iter().filter(|settled| *settled).count(), 1);
    assert_eq!(fixture.deliveries(id).await.len(), 1);
    fixture.clock.advance(Duration::from_mins(1));
    let claimed = fixture.claim_due().await;
    assert!(claimed.iter().all(|entry| entry.attempts == 1), "{claimed:?}");
}

async fn outcome_without_a_claim_is_refused(fixture: Fixture) {
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    let before = fixture.row_counts().await;
    assert!(!fixture.finish(fixture.outcome(id, Status::Sent)).await);
    assert!(!fixture.finish(fixture.outcome(MessageId(4_711), Status::Sent)).await);
    let mut foreign = fixture.outcome(id, Status::Sent);
    foreign.server_id = fixture.other_server;
    assert!(!fixture.finish(foreign).await);
    assert_eq!(fixture.row_counts().await, before);
    assert_eq!(fixture.message(id).await.status, Status::Pending);
    assert_eq!(fixture.claim_due().await.len(), 1);
}

async fn impossible_outcome_writes_nothing(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    let before = fixture.row_counts().await;
    assert!(!fixture.finish(fixture.outcome(id, Status::Bounced)).await, "Pending cannot become Bounced");
    assert_eq!(fixture.row_counts().await, before);
    assert_eq!(fixture.claim_due().await[0].message_id, id, "it is released");
}

async fn outcomes_of_a_batch_are_settled_one_by_one(fixture: Fixture) {
    let sent = fixture.accept_and_claim().await;
    let again = fixture.accept_and_claim().await;
    let unclaimed = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    let failed = {
        let mut outcome = fixture.outcome(again, Status::SoftFail);
        // A remote server may say anything.
        outcome.delivery.output = "451 \0 try later\r\n".into();
        outcome
    };
    let batch = vec![
        fixture.outcome(unclaimed, Status::Sent),
        fixture.outcome(sent, Status::Sent),
        fixture.outcome(MessageId(1), Status::Sent),
        failed,
    ];
    assert_eq!(fixture.store.finish(batch).await.expect("the store works"), [false, true, false, true]);
    assert_eq!(fixture.message(sent).await.status, Status::Sent);
    assert_eq!(fixture.message(again).await.status, Status::SoftFail);
    assert_eq!(fixture.message(unclaimed).await.status, Status::Pending);
    assert_eq!(fixture.deliveries(again).await[0].record.output, "451 \u{fffd} try later\r\n");
    assert!(
        fixture
            .store
            .finish(Vec::<postroad_store::Outcome>::new())
            .await
            .expect("the store works")
            .is_empty()
    );
}

async fn delivery_is_read_back_whole(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    let mut outcome = fixture.outcome(id, Status::SoftFail);
    outcome.delivery = NewDelivery {
        at: fixture.now(),
        status: Status::SoftFail,
        details: "The server asked us to wait – später".into(),
        output: "451 4.7.1 Greylisted".into(),
        sent_with_ssl: true,
        log_id: "L17".into(),
        duration_us: Some(123_456),
        mx: Some("mx.example.com".into()),
        remote_ip: Some("192.0.2.1".into()),
        source_ip: Some("2001:db8::1".into()),
        tls: Some("TLSv1.3".into()),
        tls_policy: Some("dane".to_owned()),
        dkim: Some("pr1._domainkey.example.test".to_owned()),
        code: Some(451),
        enhanced_code: Some("4.7.1".into()),
        bounce_class: Some("greylisting".into()),
        next_attempt_at: Some(fixture.in_secs(300)),
        possible_duplicate: true,
    };
    let expected = outcome.delivery.clone();
    assert!(fixture.finish(outcome).await);
    assert_eq!(fixture.deliveries(id).await[0].record, expected);
}

async fn released_message_is_claimed_again(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    assert!(fixture.claim_due().await.is_empty());
    let before = fixture.row_counts().await;
    fixture
        .store
        .release_claims(vec![(fixture.server, id), (fixture.server, MessageId(1))])
        .await
        .expect("the store works");
    assert!(!fixture.finish(fixture.outcome(id, Status::Sent)).await, "the claim is given up");
    let claimed = fixture.claim_due().await;
    assert_eq!((claimed[0].message_id, claimed[0].attempts), (id, 0));
    assert_eq!(fixture.row_counts().await, before);
}

async fn claims_end_with_the_process(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    assert_eq!(fixture.store.reap().await.expect("the store works"), 0, "the node is alive");
    assert!(fixture.claim_due().await.is_empty());
    let fixture = fixture.reopen().await;
    assert!(!fixture.finish(fixture.outcome(id, Status::Sent)).await);
    fixture.store.reap().await.expect("the store works");
    assert_eq!(fixture.claim_due().await[0].message_id, id);
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
}

/// The caller of `claim` disconnects before it gets the answer: nobody works on the messages claimed for it.
async fn claim_of_a_disconnected_caller_is_released(fixture: Fixture) {
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    for timeout_us in [0, 20, 50, 100, 200, 400, 800, 1_600, 3_200] {
        let claim = fixture.store.claim(fixture.now(), 10, ClaimSkips::default());
        let claimed = match tokio::time::timeout(Duration::from_micros(timeout_us), claim).await {
            Ok(claimed) => claimed.expect("the store works"),
            Err(_) => claim_soon(&fixture).await,
        };
        assert_eq!(claimed[0].message_id, id, "lost after a claim of {timeout_us} us");
        fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
    }
}

/// Claims due messages; waits until the store has some again.
async fn claim_soon(fixture: &Fixture) -> Vec<ClaimedEntry> {
    eventually_within(Duration::from_secs(5), async || {
        let claimed = fixture.claim_due().await;
        if claimed.is_empty() { Err("there is nothing to claim") } else { Ok(claimed) }
    })
    .await
}

async fn outcome_of_a_disconnected_caller_is_stored_whole_or_not_at_all(fixture: Fixture) {
    let mut attempts = 0;
    for timeout_us in [0, 20, 50, 100, 200, 400, 800, 1_600, 3_200, 6_400] {
        if timeout_us == 0 {
            fixture.accept_and_claim().await;
        }
        let id = MessageId(fixture.query_int("SELECT message_id FROM queue").await);
        let finish = fixture.store.finish(vec![fixture.outcome(id, Status::SoftFail)]);
        let _ = tokio::time::timeout(Duration::from_micros(timeout_us), finish).await;
        // Releases the claim as a worker does when it ends. Then the message is claimed again, before or after the
        // outcome is written.
        fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
        fixture.clock.advance(Duration::from_mins(1));
        let claimed = claim_soon(&fixture).await;
        assert!(claimed[0].attempts == attempts || claimed[0].attempts == attempts + 1);
        attempts = claimed[0].attempts;
        assert_eq!(fixture.event_kinds(id).await.len(), attempts as usize + 1);
        assert_eq!(fixture.deliveries(id).await.len(), attempts as usize);
    }
}

async fn claim_without_due_messages_is_empty(fixture: Fixture) {
    assert!(fixture.claim_due().await.is_empty());
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    assert!(
        fixture
            .store
            .claim(fixture.now(), 0, ClaimSkips::default())
            .await
            .expect("the store works")
            .is_empty()
    );
    fixture.store.release_claims(Vec::new()).await.expect("the store works");
    assert_eq!(fixture.claim_due().await.len(), 1);
}

async fn servers_without_room_are_skipped_until_they_have_some(fixture: Fixture) {
    let (full, other) = (fixture.server, fixture.other_server);
    let mut ids = Vec::new();
    for number in 0..12 {
        let server = if number % 4 == 3 { other } else { full };
        ids.push((server, fixture.accept(fixture.send_due_in(server, number)).await[0]));
    }
    let of = |wanted| ids.iter().filter(move |(server, _)| *server == wanted).map(|(_, id)| *id);
    let by = fixture.in_secs(60);
    let claim = async |limit, servers| {
        let skip = ClaimSkips { servers, domains: Vec::new() };
        let claimed = fixture.store.claim(by, limit, skip).await.expect("the store works");
        claimed.into_iter().map(|entry| entry.message_id).collect::<Vec<_>>()
    };
    let first = claim(2, Vec::new()).await;
    assert_eq!(first, of(full).take(2).collect::<Vec<_>>());
    assert_eq!(claim(100, vec![full]).await, of(other).collect::<Vec<_>>());
    // Released and new messages of the skipped server wait with its other messages.
    fixture.store.release_claims(vec![(full, first[0])]).await.expect("the store works");
    let new = fixture.accept(fixture.send_due_in(full, 1)).await[0];
    assert!(claim(100, vec![full]).await.is_empty());
    let mut rest: Vec<MessageId> = vec![first[0], new];
    rest.extend(of(full).skip(2));
    // Message number 5 is due after 5 seconds; the new one, which is not in `ids`, after one.
    let due_secs = |id: &MessageId| ids.iter().position(|(_, known)| known == id).unwrap_or(1);
    rest.sort_by_key(|id| (due_secs(id), *id));
    assert_eq!(claim(100, vec![other]).await, rest, "in their order");
    assert!(claim(100, Vec::new()).await.is_empty());
}
