//! The operator's view of the queue: list, retry, cancel; and holds that end.

use std::time::Duration;

use postroad_model::{DomainName, EventKind, HoldReason, MessageId, PoolId, Status, SuppressionReason};
use postroad_store::{
    Backlog, BeginRequest, BeginResult, CancelResult, InitialState, NewSuppression, QueueFilter, RetryResult,
};

use crate::fixture::{Fixture, on_both_engines, simulator_domain};

on_both_engines!(
    queue_is_listed_in_pages_by_due_time,
    queue_entries_are_counted_by_state_and_domain,
    servers_with_the_longest_queues_come_first,
    message_is_found_by_its_id_alone,
    retried_message_is_due_now,
    retry_ends_the_claim,
    held_message_is_released_into_the_queue,
    released_message_keeps_its_time_expiry_and_pool,
    message_for_a_suppressed_recipient_is_not_retried,
    cancelled_message_leaves_the_queue,
    claimed_message_that_is_cancelled_cannot_be_begun,
    begun_message_is_too_late_to_cancel_or_retry,
    settled_message_is_neither_cancelled_nor_retried,
    holds_end_when_their_time_is_over,
    concurrent_cancel_and_finish_have_one_winner,
    queue_changes_report_messages_that_are_queued_again,
);

async fn accept_scheduled(fixture: &Fixture, seconds: u64, address: &str) -> MessageId {
    let state = InitialState::Scheduled(fixture.in_secs(seconds));
    fixture.accept(fixture.send(fixture.server, &[address], state, b"x")).await[0]
}

async fn accept_held(fixture: &Fixture) -> MessageId {
    let state = InitialState::Held {
        reason: HoldReason::Development,
        details: "held".into(),
        expiry: fixture.in_secs(3_600),
    };
    fixture.accept(fixture.send(fixture.server, &["ann@example.com"], state, b"x")).await[0]
}

async fn retry(fixture: &Fixture, id: MessageId) -> RetryResult {
    fixture.store.retry(fixture.server, id, simulator_domain()).await.expect("the store works")
}

async fn cancel(fixture: &Fixture, id: MessageId) -> CancelResult {
    fixture.store.cancel(fixture.server, id).await.expect("the store works")
}

async fn begin(fixture: &Fixture, id: MessageId) -> BeginResult {
    let (server_id, due_at) = (fixture.server, fixture.now());
    let request = BeginRequest { server_id, message_id: id, due_at, needs_message: false };
    fixture.store.begin(vec![request]).await.expect("the store works").remove(0)
}

async fn queue_is_listed_in_pages_by_due_time(fixture: Fixture) {
    let third = accept_scheduled(&fixture, 30, "c@example.com").await;
    let first = fixture.accept_and_claim().await;
    let second = accept_scheduled(&fixture, 10, "b@example.org").await;
    let pending = InitialState::Pending;
    let foreign =
        fixture.accept(fixture.send(fixture.other_server, &["d@example.com"], pending, b"x")).await[0];
    let list = async |filter: QueueFilter, after, limit| {
        fixture.store.list_queue(filter, after, limit).await.expect("the store works")
    };
    let page = list(QueueFilter::default(), None, 3).await;
    let ids: Vec<MessageId> = page.iter().map(|entry| entry.message_id).collect();
    assert_eq!(ids, [first, foreign, second]);
    assert_eq!(page.iter().map(|entry| entry.claimed).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!((page[1].server_name.as_str(), page[1].server_id), ("Other", fixture.other_server));
    assert_eq!((page[2].status, page[2].due_at), (Status::Scheduled, fixture.in_secs(10)));
    assert_eq!((page[2].rcpt_to.as_str(), page[2].domain.as_str()), ("b@example.org", "example.org"));
    assert_eq!((page[2].created_at, page[2].attempts, page[2].expires_at), (fixture.now(), 0, None));
    let rest = list(QueueFilter::default(), Some((page[2].due_at, page[2].message_id)), 3).await;
    assert_eq!(rest.iter().map(|entry| entry.message_id).collect::<Vec<_>>(), [third]);
    let page_of = async |filter: QueueFilter, after, limit| {
        fixture.store.list_queue_page(filter, after, limit).await.expect("the store works")
    };
    let two_of =
        async |server, after| page_of(QueueFilter { server_id: Some(server), domain: None }, after, 2).await;
    let own = two_of(fixture.server, None).await;
    assert_eq!(
        own.iter().map(|entry| (entry.message_id, entry.claimed)).collect::<Vec<_>>(),
        [(first, true), (second, false)]
    );
    assert_eq!(own[1], page[2]);
    let own = two_of(fixture.server, Some((own[1].due_at, own[1].message_id))).await;
    assert_eq!(own.iter().map(|entry| entry.message_id).collect::<Vec<_>>(), [third]);
    assert_eq!(two_of(fixture.other_server, None).await[0].message_id, foreign);
    // Pages of all servers, and of a recipient's domain.
    assert_eq!(page_of(QueueFilter::default(), None, 3).await, page);
    assert_eq!(page_of(QueueFilter::default(), Some((page[2].due_at, page[2].message_id)), 3).await, rest);
    for server_id in [None, Some(fixture.server)] {
        let filter = QueueFilter { server_id, domain: DomainName::parse("example.org").ok() };
        assert_eq!(page_of(filter, None, 3).await, page[2..]);
    }
    let of_server = QueueFilter { server_id: Some(fixture.other_server), domain: None };
    assert_eq!(list(of_server, None, 9).await[0].message_id, foreign);
    let domain = DomainName::parse("example.org").ok();
    let of_domain = list(QueueFilter { server_id: None, domain }, None, 9).await;
    assert_eq!(of_domain.iter().map(|entry| entry.message_id).collect::<Vec<_>>(), [second]);
}

async fn queue_entries_are_counted_by_state_and_domain(fixture: Fixture) {
    let empty = fixture.store.queue_stats(usize::MAX).await.expect("the store works");
    assert_eq!((empty.total, empty.due, empty.scheduled, empty.oldest_due_at), (0, 0, 0, None));
    assert!(empty.by_domain.is_empty());
    fixture.accept(fixture.send_to(&["a@example.com", "b@example.com", "c@example.org"])).await;
    accept_scheduled(&fixture, 60, "d@example.org").await;
    accept_scheduled(&fixture, 60, "e@example.org").await;
    let stats = fixture.store.queue_stats(usize::MAX).await.expect("the store works");
    assert_eq!((stats.total, stats.due, stats.scheduled), (5, 3, 2));
    assert_eq!(stats.oldest_due_at, Some(fixture.now()));
    let domains: Vec<_> = stats.by_domain.iter().map(|(domain, count)| (domain.as_str(), *count)).collect();
    assert_eq!(domains, [("example.org", 3), ("example.com", 2)]);
    assert!(!stats.has_more);
    let bounded = fixture.store.queue_stats(2).await.expect("the store works");
    assert_eq!((bounded.total, bounded.has_more), (2, true));
}

async fn servers_with_the_longest_queues_come_first(fixture: Fixture) {
    let list = async |limit| fixture.store.list_backlogs(limit).await.expect("the store works");
    assert!(list(9).await.is_empty());
    let pending = InitialState::Pending;
    fixture.accept(fixture.send(fixture.other_server, &["a@example.com"], pending, b"x")).await;
    fixture.accept(fixture.send_to(&["a@example.com", "b@example.com"])).await;
    accept_scheduled(&fixture, 60, "d@example.org").await;
    let found = list(9).await;
    let counts: Vec<_> = found.iter().map(|backlog| (backlog.server_id, backlog.waiting)).collect();
    assert_eq!(counts, [(fixture.server, 3), (fixture.other_server, 1)]);
    assert_eq!(found[0].first_due_at, Some(fixture.now()));
    assert_eq!(found[1].server_name, "Other");
    assert_eq!(list(1).await.len(), 1);
    let many: Vec<String> =
        (0..=Backlog::COUNTED_MAX).map(|number| format!("u{number}@example.com")).collect();
    for some in many.chunks(50) {
        let some: Vec<&str> = some.iter().map(String::as_str).collect();
        fixture.accept(fixture.send(fixture.other_server, &some, InitialState::Pending, b"x")).await;
    }
    let found = list(9).await;
    assert_eq!((found[0].server_id, found[0].waiting), (fixture.other_server, Backlog::COUNTED_MAX));
}

async fn message_is_found_by_its_id_alone(fixture: Fixture) {
    let state = InitialState::Pending;
    let id = fixture.accept(fixture.send(fixture.other_server, &["a@example.com"], state, b"x")).await[0];
    let held = accept_held(&fixture).await;
    let store = &fixture.store;
    let found = store.find_queued(id).await.expect("the store works").expect("it is queued");
    assert_eq!((found.server_id, found.message_id, found.claimed), (fixture.other_server, id, false));
    assert!(store.find_queued(held).await.expect("the store works").is_none());
    assert_eq!(store.locate_message(id).await.expect("the store works"), Some(fixture.other_server));
    assert_eq!(store.locate_message(held).await.expect("the store works"), Some(fixture.server));
    assert_eq!(store.locate_message(MessageId(1)).await.expect("the store works"), None);
}

async fn retried_message_is_due_now(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::SoftFail)).await);
    assert!(fixture.claim_due().await.is_empty());
    assert_eq!(retry(&fixture, id).await, RetryResult::Now);
    let claimed = fixture.claim_due().await;
    assert_eq!((claimed[0].message_id, claimed[0].due_at, claimed[0].attempts), (id, fixture.now(), 1));
    assert_eq!(fixture.message(id).await.status, Status::SoftFail);
}

async fn retry_ends_the_claim(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    let old = fixture.now();
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(retry(&fixture, id).await, RetryResult::Now);
    let stale = BeginRequest { server_id: fixture.server, message_id: id, due_at: old, needs_message: false };
    let begun = fixture.store.begin(vec![stale]).await.expect("the store works");
    assert!(matches!(begun[0], BeginResult::Gone));
    assert!(!fixture.finish(fixture.outcome(id, Status::Sent)).await);
    assert_eq!(fixture.claim_due().await[0].message_id, id);
    assert!(matches!(begin(&fixture, id).await, BeginResult::Go(None)));
}

async fn held_message_is_released_into_the_queue(fixture: Fixture) {
    let id = accept_held(&fixture).await;
    // A later message is claimed before the held one is released.
    fixture.accept_and_claim().await;
    assert_eq!(retry(&fixture, id).await, RetryResult::Released);
    let message = fixture.message(id).await;
    assert_eq!((message.status, message.hold_expiry), (Status::Pending, None));
    assert_eq!(fixture.event_kinds(id).await, [EventKind::Accepted, EventKind::Held, EventKind::Released]);
    assert_eq!(fixture.deliveries(id).await.len(), 1);
    let claimed = fixture.claim_due().await;
    assert_eq!((claimed[0].message_id, claimed[0].domain.as_str()), (id, "example.com"));
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    assert_eq!(retry(&fixture, id).await, RetryResult::NotWaiting);
}

async fn released_message_keeps_its_time_expiry_and_pool(fixture: Fixture) {
    let state = InitialState::Held {
        reason: HoldReason::Development,
        details: "held".into(),
        expiry: fixture.in_secs(3_600),
    };
    let mut send = fixture.send(fixture.server, &["ann@example.com"], state, b"x");
    let options = &mut send.info.options;
    (options.send_at, options.expires_at) = (Some(fixture.in_secs(60)), Some(fixture.in_secs(600)));
    options.pool_id = Some(PoolId(5));
    let expires_at = options.expires_at;
    let id = fixture.accept(send).await[0];
    assert_eq!(retry(&fixture, id).await, RetryResult::Released);
    assert!(fixture.claim_due().await.is_empty(), "not before its time");
    fixture.clock.advance(Duration::from_mins(1));
    let claimed = fixture.claim_due().await;
    assert_eq!((claimed[0].expires_at, claimed[0].pool_id), (expires_at, Some(PoolId(5))));
}

async fn message_for_a_suppressed_recipient_is_not_retried(fixture: Fixture) {
    let held = accept_held(&fixture).await;
    let waiting = fixture.accept_and_claim().await;
    let new = NewSuppression {
        address: "ann@example.com".into(),
        reason: SuppressionReason::Manual,
        details: String::new(),
        origin_message_id: None,
        expires_at: None,
    };
    fixture.store.add_suppression(fixture.server, new).await.expect("the store works");
    let suppressed = RetryResult::Suppressed { reason: SuppressionReason::Manual, since: fixture.now() };
    assert_eq!(retry(&fixture, held).await, suppressed);
    assert_eq!(retry(&fixture, waiting).await, suppressed);
    assert_eq!(fixture.message(held).await.status, Status::Held);
    fixture
        .store
        .remove_suppression(fixture.server, "ann@example.com".into())
        .await
        .expect("the store works");
    assert_eq!(retry(&fixture, held).await, RetryResult::Released);
    assert_eq!(retry(&fixture, waiting).await, RetryResult::Now);
}

async fn cancelled_message_leaves_the_queue(fixture: Fixture) {
    let failed = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(failed, Status::SoftFail)).await);
    let pending = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    for id in [failed, pending, accept_scheduled(&fixture, 60, "a@example.com").await] {
        assert_eq!(cancel(&fixture, id).await, CancelResult::Done(Status::Cancelled));
        let message = fixture.message(id).await;
        assert_eq!((message.status, message.next_attempt_at), (Status::Cancelled, None));
        assert_eq!(message.last_delivery_at, Some(fixture.now()));
        assert_eq!(fixture.deliveries(id).await.last().expect("a record").record.status, Status::Cancelled);
        assert_eq!(fixture.event_kinds(id).await.last(), Some(&EventKind::Cancelled));
        assert_eq!(cancel(&fixture, id).await, CancelResult::NotWaiting);
    }
    let id = accept_held(&fixture).await;
    assert_eq!(cancel(&fixture, id).await, CancelResult::Done(Status::HoldCancelled));
    assert_eq!(fixture.message(id).await.hold_expiry, None);
    assert_eq!(fixture.row_counts().await["queue"], 0);
    fixture.clock.advance(Duration::from_hours(1));
    assert!(fixture.claim_due().await.is_empty());
}

async fn claimed_message_that_is_cancelled_cannot_be_begun(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    assert_eq!(cancel(&fixture, id).await, CancelResult::Done(Status::Cancelled));
    assert!(matches!(begin(&fixture, id).await, BeginResult::Gone));
    assert!(!fixture.finish(fixture.outcome(id, Status::Sent)).await);
    assert_eq!(fixture.message(id).await.status, Status::Cancelled);
}

async fn begun_message_is_too_late_to_cancel_or_retry(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    assert!(matches!(begin(&fixture, id).await, BeginResult::Go(None)));
    assert_eq!(cancel(&fixture, id).await, CancelResult::TooLate);
    assert_eq!(retry(&fixture, id).await, RetryResult::TooLate);
    assert!(fixture.finish(fixture.outcome(id, Status::SoftFail)).await);
    assert_eq!(cancel(&fixture, id).await, CancelResult::Done(Status::Cancelled), "it waits again");
}

async fn settled_message_is_neither_cancelled_nor_retried(fixture: Fixture) {
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    let before = fixture.row_counts().await;
    assert_eq!(
        (cancel(&fixture, id).await, retry(&fixture, id).await),
        (CancelResult::NotWaiting, RetryResult::NotWaiting)
    );
    assert_eq!(cancel(&fixture, MessageId(1)).await, CancelResult::NotWaiting);
    assert_eq!(retry(&fixture, MessageId(1)).await, RetryResult::NotWaiting);
    let queued = fixture.accept_and_claim().await;
    let foreign = fixture.store.cancel(fixture.other_server, queued).await.expect("the store works");
    assert_eq!(foreign, CancelResult::NotWaiting);
    assert_eq!(fixture.row_counts().await["deliveries"], before["deliveries"]);
    assert!(fixture.finish(fixture.outcome(queued, Status::Sent)).await, "it is still claimed");
}

async fn holds_end_when_their_time_is_over(fixture: Fixture) {
    let ids = [accept_held(&fixture).await, accept_held(&fixture).await, accept_held(&fixture).await];
    let expire = async |limit| fixture.store.expire_holds(limit).await.expect("the store works");
    assert_eq!(expire(10).await, 0);
    fixture.clock.advance(Duration::from_hours(1));
    let young = accept_held(&fixture).await;
    assert_eq!((expire(2).await, expire(2).await, expire(2).await), (2, 1, 0));
    for id in ids {
        let message = fixture.message(id).await;
        assert_eq!((message.status, message.hold_expiry), (Status::HoldCancelled, None));
        let kinds = [EventKind::Accepted, EventKind::Held, EventKind::Cancelled];
        assert_eq!(fixture.event_kinds(id).await, kinds);
        let last = fixture.deliveries(id).await.pop().expect("a record").record;
        assert_eq!(
            (last.status, last.details.as_str()),
            (Status::HoldCancelled, "The hold ended without a release")
        );
    }
    assert_eq!(fixture.message(young).await.status, Status::Held);
}

async fn concurrent_cancel_and_finish_have_one_winner(fixture: Fixture) {
    for _ in 0..20 {
        let id = fixture.accept_and_claim().await;
        let (store, server) = (fixture.store.clone(), fixture.server);
        let cancelling =
            tokio::spawn(async move { store.cancel(server, id).await.expect("the store works") });
        let sent = fixture.finish(fixture.outcome(id, Status::Sent)).await;
        let cancelled = matches!(cancelling.await.expect("it ends"), CancelResult::Done(_));
        assert!(sent != cancelled, "sent: {sent}, cancelled: {cancelled}");
        let status = if sent { Status::Sent } else { Status::Cancelled };
        assert_eq!(fixture.message(id).await.status, status);
        assert_eq!(fixture.event_kinds(id).await.len(), 2);
    }
}

async fn queue_changes_report_messages_that_are_queued_again(fixture: Fixture) {
    let (first, second) = (fixture.accept_and_claim().await, accept_held(&fixture).await);
    let (mut setup, mut changes) = (fixture.store.changes(), fixture.store.queue_changes());
    setup.mark_unchanged();
    changes.mark_unchanged();
    retry(&fixture, MessageId(1)).await;
    assert!(!changes.has_changed().expect("the store is open"));
    cancel(&fixture, first).await;
    assert!(!changes.has_changed().expect("the store is open"), "nothing is queued again");
    retry(&fixture, second).await;
    assert!(changes.has_changed().expect("the store is open"));
    assert!(!setup.has_changed().expect("the store is open"), "the setup is unchanged");
}
