//! Effects of an outcome: transcripts, suppressions, counts per source, kept claims.

use std::collections::HashSet;
use std::time::Duration;

use postroad_model::{MessageId, SourceId, Status, SuppressionReason};
use postroad_store::{ClaimSkips, NewSuppression, Outcome};

use crate::fixture::{Fixture, on_both_engines, simulator_domain};

on_both_engines!(
    retry_comes_back_with_the_address_of_its_last_attempt,
    transcripts_are_kept_by_delivery,
    outcome_suppresses_the_address_for_later_sends,
    sources_are_counted_by_day,
    refused_outcome_writes_none_of_its_parts,
    entry_that_failed_is_claimed_when_it_is_due_again,
    entries_that_come_back_are_claimed_in_order,
    entries_accepted_between_claims_are_all_claimed,
    outcome_whose_commit_was_not_confirmed_is_recorded_once,
    outcome_of_an_attempt_that_is_over_leaves_the_next_attempt_alone,
);

/// The engine repeats an outcome when the answer to its commit was lost.
async fn outcome_whose_commit_was_not_confirmed_is_recorded_once(fixture: Fixture) {
    for (keep_claim, counts_as_attempt) in [(true, true), (true, false), (false, true)] {
        let id = fixture.accept_and_claim().await;
        let due_at = fixture.now();
        let outcome = Outcome {
            claimed_due_at: Some(due_at),
            keep_claim,
            counts_as_attempt,
            ..fixture.outcome(id, Status::SoftFail)
        };
        assert!(fixture.finish(outcome.clone()).await);
        let again = fixture.finish(outcome).await;
        assert_eq!(again, keep_claim, "an attempt that this node keeps goes back into its schedule");
        assert_eq!(fixture.deliveries(id).await.len(), 1);
        assert_eq!(fixture.event_kinds(id).await.len(), 2);
        let entry = fixture.store.find_queued(id).await.expect("the store works").expect("it is queued");
        assert_eq!(entry.attempts, u32::from(counts_as_attempt));
        assert_eq!(entry.claimed, keep_claim);
        if keep_claim {
            let next = Outcome { claimed_due_at: Some(entry.due_at), ..fixture.outcome(id, Status::Sent) };
            assert!(fixture.finish(next).await, "the next attempt is recorded");
        }
    }
}

async fn outcome_of_an_attempt_that_is_over_leaves_the_next_attempt_alone(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    let first = Outcome { claimed_due_at: Some(fixture.now()), ..fixture.outcome(id, Status::Sent) };
    fixture.clock.advance(Duration::from_secs(1));
    fixture.store.retry(fixture.server, id, simulator_domain()).await.expect("the store works");
    let claimed = fixture.claim_due().await;
    assert_eq!(claimed.iter().map(|entry| entry.message_id).collect::<Vec<_>>(), [id]);
    assert!(!fixture.finish(first).await, "it was claimed for another time");
    assert_eq!(fixture.message(id).await.status, Status::Pending);
    let second = Outcome { claimed_due_at: Some(claimed[0].due_at), ..fixture.outcome(id, Status::Sent) };
    assert!(fixture.finish(second).await);
    assert_eq!(fixture.deliveries(id).await.len(), 1);
}

async fn transcripts_are_kept_by_delivery(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    let with_transcript = |status, text: &str| Outcome {
        transcript: Some(text.to_owned()),
        keep_claim: true,
        ..fixture.outcome(id, status)
    };
    assert!(fixture.finish(with_transcript(Status::SoftFail, "S: 451 \0 later")).await);
    assert!(fixture.finish(Outcome { keep_claim: true, ..fixture.outcome(id, Status::SoftFail) }).await);
    assert!(fixture.finish(with_transcript(Status::Sent, "S: 250 OK")).await);
    let deliveries = fixture.deliveries(id).await;
    let newest = async |server, limit| {
        fixture.store.list_newest_transcripts(server, id, limit).await.expect("the store works")
    };
    assert_eq!(
        newest(fixture.server, 10).await,
        [(deliveries[0].id, "S: 451 \u{fffd} later".to_owned()), (deliveries[2].id, "S: 250 OK".to_owned())]
    );
    assert_eq!(newest(fixture.server, 1).await, [(deliveries[2].id, "S: 250 OK".to_owned())]);
    assert!(newest(fixture.other_server, 10).await.is_empty());
    let newest = fixture.store.list_newest_deliveries(fixture.server, id, 2).await.expect("the store works");
    assert_eq!(newest, deliveries[1..]);
}

async fn outcome_suppresses_the_address_for_later_sends(fixture: Fixture) {
    let (first, second) = (fixture.accept_and_claim().await, fixture.accept_and_claim().await);
    let suppress = |id, details: &str| {
        let new = NewSuppression {
            address: "Ann@example.com".into(),
            reason: SuppressionReason::HardBounce,
            details: details.to_owned(),
            origin_message_id: Some(id),
            expires_at: None,
        };
        Outcome { suppress: Some(new), ..fixture.outcome(id, Status::HardFail) }
    };
    let both = vec![suppress(first, "550 5.1.1 first"), suppress(second, "550 5.1.1 second")];
    assert_eq!(fixture.store.finish(both).await.expect("the store works"), [true, true]);
    let found = fixture.store.find_suppression(fixture.server, "ann@example.com".into()).await;
    let found = found.expect("the store works").expect("it is there");
    assert_eq!((found.details.as_str(), found.origin_message_id), ("550 5.1.1 first", Some(first)));
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    assert_eq!(fixture.message(id).await.status, Status::Held);
}

async fn sources_are_counted_by_day(fixture: Fixture) {
    let mut outcomes = Vec::new();
    for (status, source) in [
        (Status::Sent, Some(3)),
        (Status::Sent, Some(3)),
        (Status::HardFail, Some(3)),
        (Status::SoftFail, Some(3)),
        (Status::Sent, Some(4)),
        (Status::Sent, None),
    ] {
        let id = fixture.accept_and_claim().await;
        outcomes.push(Outcome { source_id: source.map(SourceId), ..fixture.outcome(id, status) });
    }
    assert_eq!(fixture.store.finish(outcomes).await.expect("the store works"), [true; 6]);
    fixture.clock.advance(Duration::from_hours(24));
    let id = fixture.accept_and_claim().await;
    assert!(
        fixture.finish(Outcome { source_id: Some(SourceId(3)), ..fixture.outcome(id, Status::Sent) }).await
    );
    let of = async |column: &str, source: i64, day: i64| {
        let text = format!("SELECT {column} FROM source_days WHERE source_id = {source} AND day = {day}");
        fixture.query_int(&text).await
    };
    // 2026-11-15 is day 20,772.
    assert_eq!((of("sent", 3, 20_772).await, of("bounced", 3, 20_772).await), (2, 1));
    assert_eq!((of("sent", 4, 20_772).await, of("bounced", 4, 20_772).await), (1, 0));
    assert_eq!(of("sent", 3, 20_773).await, 1);
}

async fn refused_outcome_writes_none_of_its_parts(fixture: Fixture) {
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    let outcome = Outcome {
        suppress: Some(NewSuppression {
            address: "ann@example.com".into(),
            reason: SuppressionReason::HardBounce,
            details: String::new(),
            origin_message_id: None,
            expires_at: None,
        }),
        transcript: Some("S: 550".into()),
        source_id: Some(SourceId(3)),
        ..fixture.outcome(id, Status::HardFail)
    };
    assert!(!fixture.finish(outcome.clone()).await, "it is not claimed");
    fixture.claim_due().await;
    let impossible = Outcome { delivery: fixture.outcome(id, Status::Bounced).delivery, ..outcome };
    assert!(!fixture.finish(impossible).await);
    for table in ["suppressions", "delivery_transcripts", "source_days"] {
        assert_eq!(fixture.query_int(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
}

async fn entry_that_failed_is_claimed_when_it_is_due_again(fixture: Fixture) {
    let first = fixture.accept_and_claim().await;
    // A later entry is claimed before the failed one, which is due earlier, is queued again.
    let second = fixture.accept(fixture.send_due_in(fixture.server, 600)).await[0];
    let claimed =
        fixture.store.claim(fixture.in_secs(600), 10, ClaimSkips::default()).await.expect("the store works");
    assert_eq!(claimed[0].message_id, second);
    assert!(fixture.finish(fixture.outcome(first, Status::SoftFail)).await);
    assert!(fixture.claim_due().await.is_empty(), "it is due in a minute");
    fixture.clock.advance(Duration::from_mins(1));
    let again = fixture.claim_due().await;
    assert_eq!((again.len(), again[0].message_id, again[0].attempts), (1, first, 1));
}

async fn entries_that_come_back_are_claimed_in_order(fixture: Fixture) {
    let mut ids = Vec::new();
    for seconds in [0, 10, 20, 30] {
        ids.push(fixture.accept(fixture.send_due_in(fixture.server, seconds)).await[0]);
    }
    let by = fixture.in_secs(30);
    let claim = async |limit| {
        let claimed = fixture.store.claim(by, limit, ClaimSkips::default()).await.expect("the store works");
        claimed.into_iter().map(|entry| entry.message_id).collect::<Vec<_>>()
    };
    assert_eq!(claim(3).await, ids[..3]);
    let back = [ids[2], ids[0]].map(|id| (fixture.server, id)).to_vec();
    fixture.store.release_claims(back).await.expect("the store works");
    assert_eq!(claim(1).await, [ids[0]]);
    assert_eq!(claim(10).await, [ids[2], ids[3]]);
    assert!(claim(10).await.is_empty());
}

async fn entries_accepted_between_claims_are_all_claimed(fixture: Fixture) {
    let far = fixture.in_secs(900);
    let (store, server) = (fixture.store.clone(), fixture.server);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..200_u64 {
        // Entries arrive in no order of due time, while other tasks claim them.
        let (store, send) = (store.clone(), fixture.send_due_in(server, (n * 37) % 900));
        tasks.spawn(async move {
            store.accept(send).await.expect("the store works");
            store.claim(far, 3, ClaimSkips::default()).await.expect("the store works")
        });
    }
    let mut claimed = tasks.join_all().await.concat();
    claimed.extend(fixture.store.claim(far, 1_000, ClaimSkips::default()).await.expect("the store works"));
    let messages: HashSet<MessageId> = claimed.iter().map(|entry| entry.message_id).collect();
    assert_eq!((claimed.len(), messages.len()), (200, 200), "each once");
}

async fn retry_comes_back_with_the_address_of_its_last_attempt(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    for source in [Some(SourceId(3)), Some(SourceId(4)), None] {
        let failed = Outcome { retry_source_id: source, ..fixture.outcome(id, Status::SoftFail) };
        assert!(fixture.finish(failed).await);
        let fixture = &fixture;
        fixture.clock.advance(Duration::from_hours(24));
        let claimed = fixture.claim_due().await;
        assert_eq!((claimed[0].message_id, claimed[0].source_id), (id, source));
        fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
        assert_eq!(fixture.claim_due().await[0].source_id, source, "also when it was released");
    }
}
