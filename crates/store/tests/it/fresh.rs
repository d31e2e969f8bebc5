//! Freshly accepted messages go from the commit directly to delivery.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postroad_model::{HoldReason, MessageId, PoolId, ServerId, Status, SuppressionReason};
use postroad_store::{
    Accepted, BeginRequest, BeginResult, ClaimSkips, FreshMessages, FreshSink, InitialState, NewSuppression,
};
use postroad_testkit::eventually_within;

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    fresh_message_is_handed_over_claimed_and_whole,
    accepted_messages_stay_unclaimed_while_nobody_delivers,
    only_pending_messages_are_handed_over,
    repeated_send_is_not_handed_over_again,
    fresh_message_of_a_caller_that_disconnected_is_handed_over,
    fresh_message_is_begun_and_finished_without_a_read,
    sink_that_panics_does_not_stop_accepts,
    messages_of_a_server_without_room_stay_in_the_queue,
);

/// Collects the messages that are handed over.
#[derive(Debug, Default)]
pub(crate) struct CollectingSink(Mutex<Vec<FreshMessages>>);

impl FreshSink for CollectingSink {
    fn take(&self, fresh: FreshMessages) {
        self.0.lock().expect("nobody panics with it").push(fresh);
    }
}

impl CollectingSink {
    pub(crate) fn attach(fixture: &Fixture) -> Arc<Self> {
        let sink = Arc::new(Self::default());
        fixture.store.deliver_to(sink.clone());
        sink
    }

    fn take_all(&self) -> Vec<FreshMessages> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics with it"))
    }

    fn message_ids(&self) -> Vec<MessageId> {
        self.take_all().iter().flat_map(|fresh| fresh.recipients.iter().map(|r| r.message_id)).collect()
    }
}

async fn fresh_message_is_handed_over_claimed_and_whole(fixture: Fixture) {
    let sink = CollectingSink::attach(&fixture);
    let message = b"Subject: fresh\r\n\r\nHello\r\n";
    let mut send =
        fixture.send(fixture.server, &["Ann@example.com", "bob@example.org"], InitialState::Pending, message);
    send.info.options.expires_at = Some(fixture.in_secs(60));
    send.info.options.pool_id = Some(PoolId(7));
    let tokens: Vec<_> = send.recipients.iter().map(|recipient| recipient.token.clone()).collect();
    let send_id = send.info.id;
    let ids = fixture.accept(send).await;

    let fresh = sink.take_all();
    assert_eq!(fresh.len(), 1);
    assert_eq!((fresh[0].send.id, &fresh[0].body[..]), (send_id, &message[..]));
    let recipient = &fresh[0].recipients[0];
    assert_eq!((recipient.message_id, &recipient.token), (ids[0], &tokens[0]));
    assert_eq!(recipient.rcpt_to, "Ann@example.com");
    assert_eq!(fresh[0].recipients[1].entry.domain.as_str(), "example.org");
    assert!(fixture.claim_due().await.is_empty(), "it is claimed already");

    // The passed entries equal those that a claim would have returned.
    let entries: Vec<_> = fresh[0].recipients.iter().map(|recipient| recipient.entry.clone()).collect();
    fixture
        .store
        .release_claims(entries.iter().map(postroad_store::ClaimedEntry::key).collect())
        .await
        .expect("it works");
    assert_eq!(fixture.claim_due().await, entries);
}

async fn accepted_messages_stay_unclaimed_while_nobody_delivers(fixture: Fixture) {
    let sink = CollectingSink::attach(&fixture);
    fixture.store.stop_delivering();
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    assert!(sink.take_all().is_empty());
    assert_eq!(fixture.claim_due().await[0].message_id, id);
}

async fn only_pending_messages_are_handed_over(fixture: Fixture) {
    let sink = CollectingSink::attach(&fixture);
    let held = InitialState::Held {
        reason: HoldReason::Development,
        details: "held".into(),
        expiry: fixture.in_secs(60),
    };
    let test = InitialState::TestSent { details: "test".into() };
    for state in [held, test, InitialState::Scheduled(fixture.in_secs(30))] {
        fixture.accept(fixture.send(fixture.server, &["ann@example.com"], state, b"x")).await;
    }
    assert!(sink.take_all().is_empty());
    fixture.clock.advance(Duration::from_secs(30));
    assert_eq!(fixture.claim_due().await.len(), 1, "the scheduled one");

    let new = NewSuppression {
        address: "bob@example.com".into(),
        reason: SuppressionReason::Manual,
        details: String::new(),
        origin_message_id: None,
        expires_at: None,
    };
    fixture.store.add_suppression(fixture.server, new).await.expect("the store works");
    let mut send = fixture.send_to(&["ann@example.com", "bob@example.com", "cid@example.com"]);
    send.hourly_limit = Some(1);
    let ids = fixture.accept(send).await;
    assert_eq!(sink.message_ids(), [ids[0]]);
}

async fn repeated_send_is_not_handed_over_again(fixture: Fixture) {
    let sink = CollectingSink::attach(&fixture);
    fixture.accept(fixture.send_with_key("k", 1, "a")).await;
    let again = fixture.store.accept(fixture.send_with_key("k", 1, "b")).await.expect("the store works");
    assert!(matches!(again, Accepted::Repeated(_)));
    assert_eq!(sink.message_ids().len(), 1);
}

async fn fresh_message_of_a_caller_that_disconnected_is_handed_over(fixture: Fixture) {
    let sink = CollectingSink::attach(&fixture);
    for timeout_us in [0, 0, 50, 100, 500, 1_000, 2_000] {
        let accept = fixture.store.accept(fixture.send_to(&["ann@example.com"]));
        let _ = tokio::time::timeout(Duration::from_micros(timeout_us), accept).await;
    }
    // This one is committed last: when it is answered, all earlier ones are handed over.
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    assert_eq!(sink.message_ids().len() as i64, fixture.row_counts().await["messages"]);
    assert!(fixture.claim_due().await.is_empty());
}

async fn fresh_message_is_begun_and_finished_without_a_read(fixture: Fixture) {
    let sink = CollectingSink::attach(&fixture);
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    let entry = sink.take_all().remove(0).recipients.remove(0).entry;
    let begin = BeginRequest {
        server_id: entry.server_id,
        message_id: id,
        due_at: entry.due_at,
        needs_message: false,
    };
    let begun = fixture.store.begin(vec![begin]).await.expect("the store works");
    assert!(matches!(begun[..], [BeginResult::Go(None)]), "{begun:?}");
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    assert_eq!(fixture.row_counts().await["queue"], 0);
}

#[derive(Debug)]
struct PanickingSink;

impl FreshSink for PanickingSink {
    fn take(&self, _: FreshMessages) {
        panic!("a bug in delivery");
    }
}

async fn sink_that_panics_does_not_stop_accepts(fixture: Fixture) {
    fixture.store.deliver_to(Arc::new(PanickingSink));
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    fixture.store.stop_delivering();
    fixture.accept(fixture.send_to(&["bob@example.com"])).await;
    assert_eq!(fixture.message(id).await.status, Status::Pending);
}

/// A sink that has no room for messages of one server.
#[derive(Debug)]
struct SinkWithoutRoom {
    full_server: ServerId,
    collecting: CollectingSink,
}

impl FreshSink for SinkWithoutRoom {
    fn take(&self, fresh: FreshMessages) {
        self.collecting.take(fresh);
    }

    fn has_room(&self, server: ServerId) -> bool {
        server != self.full_server
    }
}

async fn messages_of_a_server_without_room_stay_in_the_queue(fixture: Fixture) {
    let sink =
        Arc::new(SinkWithoutRoom { full_server: fixture.server, collecting: CollectingSink::default() });
    fixture.store.deliver_to(sink.clone());
    let of_both = [fixture.server, fixture.other_server];
    let sends = of_both.map(|server| fixture.send(server, &["ann@example.com"], InitialState::Pending, b"x"));
    let ids = sends.each_ref().map(|send| send.recipients[0].id);
    // Concurrently, so that on PostgreSQL they are one batch.
    let accepted = futures_util::future::join_all(sends.map(|send| fixture.store.accept(send))).await;
    assert!(accepted.into_iter().all(|accepted| accepted.is_ok()));
    assert_eq!(sink.collecting.message_ids(), [ids[1]]);
    let batch = [["bob@example.com"], ["cid@example.com"]];
    let batch = batch.map(|to| fixture.send_to(&to));
    let in_batch = batch.each_ref().map(|send| send.recipients[0].id);
    fixture.store.accept_batch(batch.into()).await.expect("it is accepted");
    assert!(sink.collecting.message_ids().is_empty());
    let claimed: Vec<_> = fixture.claim_due().await.iter().map(|entry| entry.message_id).collect();
    assert_eq!(claimed, [ids[0], in_batch[0], in_batch[1]], "a claim finds them");
}

/// If the answer to a commit is lost, later claims of this node return the messages that the commit had claimed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fresh_messages_come_back_if_the_answer_to_their_commit_is_lost() {
    let database = postroad_testkit::Database::create();
    let proxy = postroad_testkit::PgProxy::start(database.url());
    let proxied = postroad_store::Database::Postgres(proxy.url().to_owned());
    let fixture = Fixture::through(crate::fixture::EngineFiles::Postgres(database), proxied).await;
    let sink = CollectingSink::attach(&fixture);
    fixture.accept(fixture.send_to(&["first@example.com"])).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (store, send) = (fixture.store.clone(), fixture.send_to(&["ann@example.com"]));
        tasks.spawn(async move { store.accept(send).await });
        tokio::task::yield_now().await;
    }
    proxy.cut();
    tasks.join_all().await;
    proxy.restore();
    let handed_over = sink.message_ids().len();
    let mut claimed = 0;
    eventually_within(Duration::from_secs(10), async || {
        let stored = fixture.row_counts().await["queue"] as usize;
        claimed += fixture
            .store
            .claim(fixture.now(), 1_000, ClaimSkips::default())
            .await
            .map_or(0, |found| found.len());
        if claimed + handed_over == stored {
            return Ok(());
        }
        Err(format!("{claimed} claimed and {handed_over} handed over of {stored}"))
    })
    .await;
}
