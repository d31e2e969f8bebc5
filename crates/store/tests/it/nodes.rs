//! Several nodes on one PostgreSQL: leases, fences, shared queue.

use std::collections::HashSet;
use std::time::Duration;

use postroad_model::{MessageId, Status};
use postroad_store::{Accepted, InitialState, OpenError, Store};

use crate::fixture::{Fixture, IDENTITY, is_unavailable, new_send, open};

async fn second_node(fixture: &Fixture) -> Store {
    open(fixture.place.database(), "another node", &fixture.clock).await.expect("there is a free number")
}

/// Pretends that another process took this node's number.
async fn take_lease_away(fixture: &Fixture) {
    fixture.execute("UPDATE nodes SET epoch = epoch + 1 WHERE owner <> ''").await;
    fixture
        .execute("UPDATE node_ids SET epoch = (SELECT epoch FROM nodes WHERE nodes.node = node_ids.node)")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_share_the_work_and_never_a_message() {
    let fixture = Fixture::postgres().await;
    let other = second_node(&fixture).await;
    assert_eq!(fixture.query_int("SELECT count(*) FROM nodes WHERE owner <> ''").await, 2);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..200 {
        let store = if n % 2 == 0 { fixture.store.clone() } else { other.clone() };
        let (server, now) = (fixture.server, fixture.now());
        tasks.spawn(async move {
            let send = new_send(&store, server, now, &["ann@example.com"], InitialState::Pending, b"x");
            let id = send.recipients[0].id;
            store.accept(send).await.expect("the store works");
            id
        });
    }
    let accepted: HashSet<MessageId> = tasks.join_all().await.into_iter().collect();
    assert_eq!(accepted.len(), 200, "ids are unique over the nodes");

    // The second node has some for certain, whoever wins the race for the others.
    let of_other = other.claim(fixture.now(), 3, Vec::new()).await.expect("the store works");
    assert_eq!(of_other.len(), 3);

    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let store = if n % 2 == 0 { fixture.store.clone() } else { other.clone() };
        let now = fixture.now();
        tasks.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claimed = store.claim(now, 9, Vec::new()).await.expect("the store works");
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed.into_iter().map(|entry| entry.message_id));
            }
        });
    }
    let claimed = tasks.join_all().await;
    let all: Vec<MessageId> =
        claimed.into_iter().flatten().chain(of_other.iter().map(|entry| entry.message_id)).collect();
    // Skipped rows may be left to a later claim when both look at the same moment.
    let rest: Vec<MessageId> = fixture.claim_due().await.iter().map(|entry| entry.message_id).collect();
    assert_eq!(all.len() + rest.len(), 200);
    assert_eq!(all.iter().chain(&rest).copied().collect::<HashSet<_>>(), accepted);

    // Neither settles what the other claimed.
    let id = of_other[0].message_id;
    assert!(!fixture.finish(fixture.outcome(id, Status::Sent)).await);
    fixture.store.release(vec![(fixture.server, id)]).await.expect("the store works");
    assert_eq!(other.finish(vec![fixture.outcome(id, Status::Sent)]).await.expect("the store works"), [true]);
}

#[tokio::test]
async fn restarted_node_gets_its_number_back_and_its_claims_are_reaped() {
    let fixture = Fixture::postgres().await;
    let _other = second_node(&fixture).await;
    let place = |column: &str| format!("SELECT {column} FROM nodes WHERE owner = '{IDENTITY}'");
    let (number, epoch) = (place("node"), place("epoch"));
    let before = (fixture.query_int(&number).await, fixture.query_int(&epoch).await);
    let id = fixture.claimed_message().await;
    let last_id = fixture.store.ids().expect("a node has ids").last();
    fixture.clock.set(fixture.now().minus(Duration::from_secs(100)));
    let fixture = fixture.reopen().await;
    let after = (fixture.query_int(&number).await, fixture.query_int(&epoch).await);
    assert_eq!(after, (before.0, before.1 + 1));
    assert!(fixture.store.ids().expect("a node has ids").next() > last_id);
    fixture.clock.advance(Duration::from_secs(100));
    assert!(fixture.claim_due().await.is_empty());
    assert_eq!(fixture.store.reap().await.expect("the store works"), 1);
    assert_eq!(fixture.claim_due().await[0].message_id, id);
}

#[tokio::test]
async fn dead_nodes_claims_are_reaped_when_its_lease_ran_out() {
    let fixture = Fixture::postgres().await;
    let other = second_node(&fixture).await;
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    assert_eq!(other.claim(fixture.now(), 10, Vec::new()).await.expect("the store works").len(), 1);
    drop(other);
    assert_eq!(fixture.store.reap().await.expect("the store works"), 0, "its lease runs on");
    fixture.execute("UPDATE nodes SET lease_until = 1 WHERE owner = 'another node'").await;
    assert_eq!(fixture.store.reap().await.expect("the store works"), 1);
    assert_eq!(fixture.claim_due().await[0].message_id, id);
}

#[tokio::test]
async fn lost_lease_fences_accept_and_finish() {
    let fixture = Fixture::postgres().await;
    let id = fixture.claimed_message().await;
    let before = fixture.row_counts().await;
    take_lease_away(&fixture).await;
    let with_key = fixture.store.accept(fixture.send_with_key("k", 1, "a")).await;
    assert!(is_unavailable(&with_key), "{with_key:?}");
    let without = fixture.store.accept(fixture.send_to(&["ann@example.com"])).await;
    assert!(is_unavailable(&without), "{without:?}");
    let finished = fixture.store.finish(vec![fixture.outcome(id, Status::Sent)]).await;
    assert!(is_unavailable(&finished), "{finished:?}");
    assert!(fixture.claim_due().await.is_empty(), "it claims nothing either");
    assert_eq!(fixture.row_counts().await, before);
    assert_eq!(fixture.message(id).await.status, Status::Pending);
}

/// The heartbeat notices after at most 5 s and takes a new lease; ids go on above those handed out before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_lost_its_lease_takes_a_new_one() {
    let fixture = Fixture::postgres().await;
    let early = fixture.send_to(&["ann@example.com"]);
    let handed_out = fixture.store.ids().expect("a node has ids").last();
    take_lease_away(&fixture).await;
    let deadline = std::time::Instant::now() + Duration::from_secs(15);
    loop {
        match fixture.store.accept(fixture.send_to(&["bob@example.com"])).await {
            Ok(accepted) => break assert_eq!(accepted, Accepted::Stored),
            Err(error) => assert!(std::time::Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(fixture.store.ids().expect("a node has ids").next() > handed_out);
    // A send that had its ids before the change is good: no other id is the same.
    fixture.accept(early).await;
}

#[tokio::test]
async fn ids_of_another_node_are_not_accepted() {
    let fixture = Fixture::postgres().await;
    let other = second_node(&fixture).await;
    let now = fixture.now();
    let send = new_send(&other, fixture.server, now, &["ann@example.com"], InitialState::Pending, b"x");
    assert!(is_unavailable(&fixture.store.accept(send).await));
}

#[tokio::test]
async fn there_are_32_nodes_at_most() {
    let fixture = Fixture::postgres().await;
    fixture
        .execute("UPDATE nodes SET owner = 'x' || node, lease_until = 9000000000000000 WHERE owner = ''")
        .await;
    let refused = open(fixture.place.database(), "one too many", &fixture.clock).await.unwrap_err();
    assert!(matches!(refused, OpenError::NoFreeNode), "{refused:?}");
    fixture.execute("UPDATE nodes SET lease_until = 1 WHERE node = 17").await;
    open(fixture.place.database(), "one too many", &fixture.clock).await.expect("the store works");
    assert_eq!(fixture.query_int("SELECT node FROM nodes WHERE owner = 'one too many'").await, 17);
}

/// Two nodes with the same keys at the same moment: one sends, the other is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_on_two_nodes_is_one_send() {
    let fixture = Fixture::postgres().await;
    let other = second_node(&fixture).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..100 {
        let key = fixture.send_with_key(&format!("k{}", n % 10), 1, &format!("answer {n}")).idempotency;
        let store = if n % 2 == 0 { fixture.store.clone() } else { other.clone() };
        let (server, now) = (fixture.server, fixture.now());
        tasks.spawn(async move {
            let state = InitialState::Pending;
            let mut send = new_send(&store, server, now, &["ann@example.com"], state, b"x");
            send.idempotency = key;
            store.accept(send).await.expect("the store works")
        });
    }
    let answers = tasks.join_all().await;
    assert_eq!(answers.iter().filter(|answer| **answer == Accepted::Stored).count(), 10);
    assert_eq!(fixture.row_counts().await["sends"], 10);
}
