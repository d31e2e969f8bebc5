//! Several nodes on one PostgreSQL: leases, fences, shared queue.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{DomainName, EventSet, MessageId, Status, Timestamp};
use postroad_store::{
    Accepted, BeginRequest, BeginResult, CertificateNote, ClaimSkips, Database, InitialState,
    NodeDescription, NodeListener, NodeRecord, OpenError, Role, Store,
};
use postroad_testkit::eventually;

use crate::fixture::{Fixture, IDENTITY, is_unavailable, new_send, on_both_engines, open, settings};
use crate::webhooks;

async fn open_second_node(fixture: &Fixture) -> Store {
    open(fixture.engine_files.database(), "another node", &fixture.clock)
        .await
        .expect("there is a free number")
}

async fn live_nodes(fixture: &Fixture) -> usize {
    let nodes = fixture.store.list_nodes().await.expect("the store works");
    nodes.iter().filter(|node| node.is_live).count()
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
    let other = open_second_node(&fixture).await;
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

    // The second node gets some messages for certain, whoever wins the race for the others.
    let of_other = other.claim(fixture.now(), 3, ClaimSkips::default()).await.expect("the store works");
    assert_eq!(of_other.len(), 3);

    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let store = if n % 2 == 0 { fixture.store.clone() } else { other.clone() };
        let now = fixture.now();
        tasks.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claimed = store.claim(now, 9, ClaimSkips::default()).await.expect("the store works");
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
    // If both nodes claim at the same moment, rows that both skip are left to a later claim.
    let rest: Vec<MessageId> = fixture.claim_due().await.iter().map(|entry| entry.message_id).collect();
    assert_eq!(all.len() + rest.len(), 200);
    assert_eq!(all.iter().chain(&rest).copied().collect::<HashSet<_>>(), accepted);

    // Neither node settles what the other one claimed.
    let id = of_other[0].message_id;
    assert!(!fixture.finish(fixture.outcome(id, Status::Sent)).await);
    fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
    assert_eq!(other.finish(vec![fixture.outcome(id, Status::Sent)]).await.expect("the store works"), [true]);
}

#[tokio::test]
async fn restarted_node_gets_its_number_back_and_its_claims_are_reaped() {
    let fixture = Fixture::postgres().await;
    let _other = open_second_node(&fixture).await;
    let select = |column: &str| format!("SELECT {column} FROM nodes WHERE owner = '{IDENTITY}'");
    let (number, epoch) = (select("node"), select("epoch"));
    let before = (fixture.query_int(&number).await, fixture.query_int(&epoch).await);
    let id = fixture.accept_and_claim().await;
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
async fn claims_of_a_dead_node_are_reaped_when_its_lease_has_ended() {
    let fixture = Fixture::postgres().await;
    let other = open_second_node(&fixture).await;
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    assert_eq!(
        other.claim(fixture.now(), 10, ClaimSkips::default()).await.expect("the store works").len(),
        1
    );
    drop(other);
    assert_eq!(fixture.store.reap().await.expect("the store works"), 0, "its lease has not ended");
    fixture.execute("UPDATE nodes SET lease_until = 1 WHERE owner = 'another node'").await;
    assert_eq!(fixture.store.reap().await.expect("the store works"), 1);
    assert_eq!(fixture.claim_due().await[0].message_id, id);
}

#[tokio::test]
async fn lost_lease_fences_accept_and_finish() {
    let fixture = Fixture::postgres().await;
    let id = fixture.accept_and_claim().await;
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

/// The heartbeat notices after at most 5 s and takes a new lease; ids continue above those created before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_lost_its_lease_takes_a_new_one() {
    let fixture = Fixture::postgres().await;
    let early = fixture.send_to(&["ann@example.com"]);
    let handed_out = fixture.store.ids().expect("a node has ids").last();
    take_lease_away(&fixture).await;
    let accept = async || fixture.store.accept(fixture.send_to(&["bob@example.com"])).await;
    assert_eq!(eventually(accept).await, Accepted::Stored(Vec::new()));
    assert!(fixture.store.ids().expect("a node has ids").next() > handed_out);
    // A send whose ids were created before is accepted: the ids are still unique.
    fixture.accept(early).await;
}

#[tokio::test]
async fn ids_of_another_node_are_not_accepted() {
    let fixture = Fixture::postgres().await;
    let other = open_second_node(&fixture).await;
    let now = fixture.now();
    let send = new_send(&other, fixture.server, now, &["ann@example.com"], InitialState::Pending, b"x");
    assert!(is_unavailable(&fixture.store.accept(send).await));
}

#[tokio::test]
async fn there_are_32_nodes_at_most() {
    let fixture = Fixture::postgres().await;
    fixture
        .execute(
            "UPDATE nodes SET owner = 'x' || node,
                lease_until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 30000000
             WHERE owner = ''",
        )
        .await;
    let refused = open(fixture.engine_files.database(), "one too many", &fixture.clock).await.unwrap_err();
    assert!(matches!(refused, OpenError::NoFreeNode), "{refused:?}");
    fixture.execute("UPDATE nodes SET lease_until = 1 WHERE node = 17").await;
    open(fixture.engine_files.database(), "one too many", &fixture.clock).await.expect("the store works");
    assert_eq!(fixture.query_int("SELECT node FROM nodes WHERE owner = 'one too many'").await, 17);
}

/// No lease lasts this long: the database's clock was ahead when it was taken.
const LEASE_AN_HOUR_AHEAD: &str = "UPDATE nodes SET
    lease_until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 3600000000 WHERE owner <> ''";
const LEASE_SECONDS_LEFT: &str =
    "SELECT max(lease_until) / 1000000 - extract(epoch FROM clock_timestamp())::bigint FROM nodes";

/// A node renews its lease every 5 s; until then it must not look dead.
#[tokio::test]
async fn nodes_stay_alive_when_the_databases_clock_goes_back() {
    let fixture = Fixture::postgres().await;
    let other = open_second_node(&fixture).await;
    let ids = fixture.accept(fixture.send_to(&["ann@example.com", "bob@example.com"])).await;
    other.claim(fixture.now(), 10, ClaimSkips::default()).await.expect("the store works");
    begin(&other, &fixture, ids[0]).await;
    fixture.execute("UPDATE queue SET begun_at = begun_at - 960000000 WHERE begun_at > 0").await;
    fixture.execute(LEASE_AN_HOUR_AHEAD).await;
    let keys = ids.iter().map(|id| (fixture.server, *id)).collect();
    assert_eq!(fixture.store.adopt(keys).await.expect("the store works"), []);
    assert_eq!(fixture.store.adopt_abandoned(10).await.expect("the store works"), []);
    assert_eq!(fixture.store.reap().await.expect("the store works"), 0);
    let third = open(fixture.engine_files.database(), "a third node", &fixture.clock).await;
    third.expect("the store works");
    assert_eq!(
        fixture.query_int("SELECT count(*) FROM nodes WHERE owner <> ''").await,
        3,
        "none was taken away"
    );
    assert!(matches!(begin(&other, &fixture, ids[1]).await, BeginResult::Go(None)));
    let outcomes = ids.iter().map(|id| fixture.outcome(*id, Status::Sent)).collect();
    assert_eq!(other.finish(outcomes).await.expect("the store works"), [true, true]);
}

#[tokio::test]
async fn dead_nodes_are_found_after_the_databases_clock_went_back() {
    let fixture = Fixture::postgres().await;
    fixture.execute(LEASE_AN_HOUR_AHEAD).await;
    assert_eq!(fixture.store.reap().await.expect("the store works"), 0);
    let left = fixture.query_int(LEASE_SECONDS_LEFT).await;
    assert!((0..=31).contains(&left), "{left}");
    fixture.execute(LEASE_AN_HOUR_AHEAD).await;
    open(fixture.engine_files.database(), "another node", &fixture.clock).await.expect("the store works");
    let left = fixture.query_int(LEASE_SECONDS_LEFT).await;
    assert!((0..=31).contains(&left), "{left}");
}

/// Two nodes with the same keys at the same moment: one sends, the other gets the stored answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_on_two_nodes_is_one_send() {
    let fixture = Fixture::postgres().await;
    let other = open_second_node(&fixture).await;
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
    assert_eq!(answers.iter().filter(|answer| **answer == Accepted::Stored(Vec::new())).count(), 10);
    assert_eq!(fixture.row_counts().await["sends"], 10);
}

async fn begin(store: &Store, fixture: &Fixture, id: MessageId) -> BeginResult {
    let (server_id, due_at) = (fixture.server, fixture.now());
    let request = BeginRequest { server_id, message_id: id, due_at, needs_message: false };
    store.begin(vec![request]).await.expect("the store works").remove(0)
}

/// A message that a dead node had begun may have been sent: for 15 minutes no node claims it, and then only to record
/// that.
#[tokio::test]
async fn begun_messages_of_a_dead_node_are_adopted_later() {
    let fixture = Fixture::postgres().await;
    let other = open_second_node(&fixture).await;
    let ids = fixture.accept(fixture.send_to(&["ann@example.com", "bob@example.com"])).await;
    other.claim(fixture.now(), 10, ClaimSkips::default()).await.expect("the store works");
    assert!(matches!(begin(&other, &fixture, ids[0]).await, BeginResult::Go(None)));
    drop(other);
    fixture.execute("UPDATE nodes SET lease_until = 1 WHERE owner = 'another node'").await;
    assert_eq!(fixture.store.reap().await.expect("the store works"), 1);
    assert_eq!(fixture.claim_due().await[0].message_id, ids[1]);
    fixture.execute("UPDATE queue SET begun_at = begun_at - 899000000 WHERE begun_at > 0").await;
    assert_eq!(fixture.store.adopt_abandoned(10).await.expect("the store works"), []);
    fixture.execute("UPDATE queue SET begun_at = begun_at - 2000000 WHERE begun_at > 0").await;
    assert_eq!(
        fixture.store.reap().await.expect("the store works"),
        0,
        "it is not sent again without a record"
    );
    let adopted = fixture.store.adopt_abandoned(10).await.expect("the store works");
    assert_eq!(adopted.iter().map(|entry| entry.message_id).collect::<Vec<_>>(), [ids[0]]);
    assert_eq!(fixture.store.adopt_abandoned(10).await.expect("the store works"), []);
    assert!(fixture.finish(fixture.outcome(ids[0], Status::SoftFail)).await);
    fixture.clock.advance(Duration::from_hours(24));
    assert_eq!(fixture.claim_due().await[0].message_id, ids[0], "it is tried again");
}

/// Creates a message that another node began long ago, before it died.
async fn create_begun_by_a_dead_node(fixture: &Fixture) -> MessageId {
    let other = open_second_node(fixture).await;
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    other.claim(fixture.now(), 10, ClaimSkips::default()).await.expect("the store works");
    begin(&other, fixture, id).await;
    drop(other);
    fixture.execute("UPDATE nodes SET lease_until = 1 WHERE owner = 'another node'").await;
    fixture.execute("UPDATE queue SET begun_at = begun_at - 960000000").await;
    id
}

async fn adopt_abandoned(fixture: &Fixture) -> Vec<MessageId> {
    let adopted = fixture.store.adopt_abandoned(10).await.expect("the store works");
    adopted.iter().map(|entry| entry.message_id).collect()
}

/// No node claims the message for sending.
async fn assert_not_claimable(fixture: &Fixture) {
    fixture.store.reap().await.expect("the store works");
    assert_eq!(fixture.claim_due().await, []);
}

#[tokio::test]
async fn a_possible_duplicate_stays_one_until_its_outcome_is_recorded() {
    let mut fixture = Fixture::postgres().await;
    let id = create_begun_by_a_dead_node(&fixture).await;
    for _ in 0..3 {
        assert_eq!(adopt_abandoned(&fixture).await, [id]);
        fixture = fixture.reopen().await;
        assert_eq!(fixture.store.release_previous_claims().await.expect("the store works"), 0);
        assert_not_claimable(&fixture).await;
    }
    assert_eq!(adopt_abandoned(&fixture).await, [id]);
    fixture.store.unbegin(fixture.server, id).await.expect("the store works");
    fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
    assert_not_claimable(&fixture).await;
    assert_eq!(adopt_abandoned(&fixture).await, [id], "it was released");
    assert!(fixture.finish(fixture.outcome(id, Status::SoftFail)).await);
    fixture.clock.advance(Duration::from_hours(24));
    assert_eq!(fixture.claim_due().await[0].message_id, id);
}

/// The node whose journal has the outcome dies before it records it.
#[tokio::test]
async fn a_message_adopted_by_the_node_with_its_journal_stays_a_possible_duplicate() {
    let fixture = Fixture::postgres().await;
    let id = create_begun_by_a_dead_node(&fixture).await;
    let adopted = fixture.store.adopt(vec![(fixture.server, id)]).await.expect("the store works");
    assert_eq!(adopted[0].message_id, id);
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.store.release_previous_claims().await.expect("the store works"), 0);
    assert_not_claimable(&fixture).await;
    assert_eq!(adopt_abandoned(&fixture).await, [], "its journal comes first, for a quarter of an hour");
    let adopted = fixture.store.adopt(vec![(fixture.server, id)]).await.expect("the store works");
    assert_eq!(adopted[0].message_id, id);
    fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
    assert_not_claimable(&fixture).await;
    assert_eq!(adopt_abandoned(&fixture).await, []);
    fixture.execute(ADOPTED_LONG_AGO).await;
    assert_eq!(adopt_abandoned(&fixture).await, [id]);
}

/// As if a quarter of an hour had passed since nodes with journals adopted entries.
const ADOPTED_LONG_AGO: &str = "UPDATE queue SET begun_at = begun_at + 960000000 WHERE begun_at < 0";

/// The caller disconnects at any moment: also after the commit, before it gets the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adoption_whose_answer_is_lost_stays_a_possible_duplicate() {
    let fixture = Fixture::postgres().await;
    let id = create_begun_by_a_dead_node(&fixture).await;
    for timeout_us in [0, 100, 400, 800, 1_200, 1_600, 2_400, 3_200, 6_400] {
        for is_by_journal in [false, true] {
            let keys = vec![(fixture.server, id)];
            let adopt = async {
                if is_by_journal {
                    fixture.store.adopt(keys).await
                } else {
                    fixture.store.adopt_abandoned(10).await
                }
            };
            let _ = tokio::time::timeout(Duration::from_micros(timeout_us), adopt).await;
            fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
            assert_not_claimable(&fixture).await;
            eventually(async || {
                // The statement of a disconnected caller may still run, and adopt after the release.
                fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
                fixture.execute(ADOPTED_LONG_AGO).await;
                let is_adopted = adopt_abandoned(&fixture).await == [id];
                if is_adopted { Ok(()) } else { Err(format!("not adopted again after {timeout_us} us")) }
            })
            .await;
            fixture.store.release_claims(vec![(fixture.server, id)]).await.expect("the store works");
        }
    }
}

#[tokio::test]
async fn restarted_node_adopts_messages_of_its_journal_and_releases_the_others() {
    let fixture = Fixture::postgres().await;
    let other = open_second_node(&fixture).await;
    let addresses = ["a@example.com", "b@example.com", "c@example.com", "d@example.com"];
    let ids = fixture.accept(fixture.send_to(&addresses)).await;
    let foreign = other.claim(fixture.now(), 1, ClaimSkips::default()).await.expect("the store works");
    assert_eq!(foreign[0].message_id, ids[0]);
    begin(&other, &fixture, ids[0]).await;
    assert_eq!(fixture.claim_due().await.len(), 3);
    for id in &ids[1..3] {
        assert!(matches!(begin(&fixture.store, &fixture, *id).await, BeginResult::Go(None)));
    }
    // Twice, so that the claims are of the epoch before the last.
    let fixture = fixture.reopen().await.reopen().await;
    let key = |id: MessageId| (fixture.server, id);
    let adopted = fixture.store.adopt(vec![key(ids[0]), key(ids[1]), key(MessageId(1))]).await;
    let adopted = adopted.expect("the store works");
    assert_eq!(adopted.iter().map(|entry| entry.message_id).collect::<Vec<_>>(), [ids[1]]);
    assert!(fixture.store.adopt(vec![key(ids[1])]).await.expect("the store works").is_empty(), "it is ours");
    assert!(fixture.finish(fixture.outcome(ids[1], Status::Sent)).await);
    assert_eq!(fixture.store.release_previous_claims().await.expect("the store works"), 1);
    assert_eq!(fixture.store.reap().await.expect("the store works"), 1, "it was claimed and not begun");
    let claimed: Vec<MessageId> = fixture.claim_due().await.iter().map(|entry| entry.message_id).collect();
    assert_eq!(claimed, [ids[2], ids[3]]);
    assert_eq!(other.finish(vec![fixture.outcome(ids[0], Status::Sent)]).await.expect("it works"), [true]);
}

/// A node's number that got a new owner: the new owner must not release the old one's claims.
#[tokio::test]
async fn claims_of_an_earlier_owner_are_not_released() {
    let fixture = Fixture::postgres().await;
    let id = fixture.accept_and_claim().await;
    begin(&fixture.store, &fixture, id).await;
    fixture.execute("UPDATE nodes SET owner = 'somebody else'").await;
    fixture.execute("UPDATE nodes SET lease_until = 1").await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.store.release_previous_claims().await.expect("the store works"), 0);
    // But a node whose journal has the outcome may adopt it.
    assert_eq!(fixture.store.adopt(vec![(fixture.server, id)]).await.expect("the store works").len(), 1);
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
}

#[tokio::test]
async fn live_nodes_are_counted() {
    let fixture = Fixture::postgres().await;
    assert_eq!(live_nodes(&fixture).await, 1);
    let _other = open_second_node(&fixture).await;
    assert_eq!(fixture.store.delivery_setup(None).await.expect("the store works").live_nodes, 2);
    fixture.execute("UPDATE nodes SET lease_until = 1 WHERE owner = 'another node'").await;
    assert_eq!(live_nodes(&fixture).await, 1);
}

#[tokio::test]
async fn claims_skip_full_recipient_domains() {
    let fixture = Fixture::postgres().await;
    let ids = fixture.accept(fixture.send_to(&["a@full.example", "b@free.example"])).await;
    let full = vec![DomainName::parse("full.example").expect("a domain")];
    let claimed = fixture
        .store
        .claim(fixture.now(), 1, ClaimSkips { domains: full, servers: Vec::new() })
        .await
        .expect("the store works");
    assert_eq!(claimed[0].message_id, ids[1]);
    assert_eq!(fixture.claim_due().await[0].message_id, ids[0]);
}

#[tokio::test]
async fn a_claim_that_skips_a_server_gets_none_of_its_entries() {
    let fixture = Fixture::postgres().await;
    let full: Vec<String> = (0..300).map(|number| format!("u{number}@full.example")).collect();
    fixture.accept(fixture.send_to(&full.iter().map(String::as_str).collect::<Vec<_>>())).await;
    let mut others = Vec::new();
    for number in 0..3 {
        let addresses = [format!("a{number}@free.example"), format!("b{number}@free.example")];
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        let send = fixture.send(fixture.other_server, &addresses, InitialState::Pending, b"x");
        others.extend(fixture.accept(send).await);
    }
    let claim = async |limit| {
        let skip = ClaimSkips { domains: Vec::new(), servers: vec![fixture.server] };
        let claimed = fixture.store.claim(fixture.now(), limit, skip).await.expect("the store works");
        claimed.iter().map(|claimed| claimed.message_id).collect::<Vec<_>>()
    };
    assert_eq!(claim(4).await, others[..4], "the oldest first");
    assert_eq!(claim(4).await, others[4..]);
    assert!(claim(4).await.is_empty());
    assert_eq!(fixture.claim_due().await.len(), 300, "everything is left for others");
}

/// If an older version made the partitions of a week, those of tables that came later are missing.
#[tokio::test]
async fn transcript_of_a_message_older_than_its_table_is_stored() {
    let fixture = Fixture::postgres().await;
    let id = fixture.accept_and_claim().await;
    let week = id.0 / ((7 * 24 * 3_600) << 21);
    for week in week..week + 3 {
        fixture.execute(&format!("DROP TABLE delivery_transcripts_w{week}")).await;
    }
    let fixture = fixture.reopen().await;
    fixture.clock.advance(Duration::from_hours(30 * 24));
    fixture.store.reap().await.expect("the store works");
    fixture.claim_due().await;
    let mut outcome = fixture.outcome(id, Status::Sent);
    outcome.transcript = Some("S: 250".into());
    assert!(fixture.finish(outcome).await);
    let kept = fixture.store.list_newest_transcripts(fixture.server, id, 10).await.expect("the store works");
    assert_eq!(kept.len(), 1);
}

#[tokio::test]
async fn webhook_claims_of_a_node_are_free_when_it_starts_again() {
    let fixture = Fixture::postgres().await;
    let other = open_second_node(&fixture).await;
    let webhook = webhooks::create(&fixture, EventSet::ALL).await;
    for _ in 0..3 {
        fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    }
    let of_other = other.claim_webhook_work(fixture.server, webhook.id, 1, Vec::new()).await;
    let of_other = of_other.expect("the store works").remove(0).event.id;
    assert_eq!(webhooks::claim(&fixture, &webhook).await.len(), 2);
    assert!(webhooks::claim(&fixture, &webhook).await.is_empty());
    let fixture = fixture.reopen().await;
    let again = webhooks::claim(&fixture, &webhook).await;
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|work| work.event.id != of_other), "the other node has it");
}

on_both_engines!(a_node_is_listed_with_its_description);

fn description(host: &str) -> NodeDescription {
    let listener = NodeListener { name: "HTTPS".to_owned(), address: "0.0.0.0:443".to_owned() };
    NodeDescription {
        host: host.to_owned(),
        version: "0.1.0".to_owned(),
        started_at: Timestamp::from_micros(1_794_711_600_000_000),
        listeners: vec![listener],
        certificate: Some(CertificateNote { is_replaced: true, ..CertificateNote::default() }),
    }
}

async fn a_node_is_listed_with_its_description(fixture: Fixture) {
    let nodes = fixture.store.list_nodes().await.expect("the store works");
    assert_eq!((nodes.len(), &nodes[0].description), (1, &None), "it is not described yet");
    fixture.store.describe_node(&description("mx1.example.com")).await.expect("the store works");
    let other = NodeDescription { certificate: None, ..description("mx1.example.com") };
    fixture.store.describe_node(&other).await.expect("the store works");
    let fixture = fixture.reopen().await;
    let nodes = fixture.store.list_nodes().await.expect("the store works");
    let [node] = nodes.as_slice() else { panic!("{nodes:?}") };
    assert!(node.is_live && node.is_this && node.last_seen_at.is_some(), "{node:?}");
    assert_eq!((node.number, node.description.as_ref()), (0, Some(&other)));
    // A command-line tool is no node.
    let (database, clock) = (fixture.engine_files.database(), Arc::new(fixture.clock.clone()));
    if matches!(database, Database::Postgres(_)) {
        let tool = Store::open(settings(database), Role::Tool, clock).await.expect("the store opens");
        assert!(tool.describe_node(&other).await.is_err());
        let seen = tool.list_nodes().await.expect("the store works");
        assert_eq!((seen.len(), seen[0].is_live, seen[0].is_this), (1, true, false));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_listed_until_another_node_has_their_number() {
    let fixture = Fixture::postgres().await;
    let other = open_second_node(&fixture).await;
    fixture.store.describe_node(&description("mx1.example.com")).await.expect("the store works");
    other.describe_node(&description("mx2.example.com")).await.expect("the store works");
    let listed = async |store: &Store| {
        let nodes = store.list_nodes().await.expect("the store works");
        let host = |node: &NodeRecord| node.description.as_ref().map(|node| node.host.clone());
        nodes.iter().map(|node| (node.number, node.is_live, host(node))).collect::<Vec<_>>()
    };
    let (first, second) = (Some("mx1.example.com".to_owned()), Some("mx2.example.com".to_owned()));
    assert_eq!(listed(&fixture.store).await, [(0, true, first.clone()), (1, true, second.clone())]);
    drop(other);
    fixture.execute("UPDATE nodes SET lease_until = lease_until - 3600000000 WHERE node = 1").await;
    assert_eq!(listed(&fixture.store).await, [(0, true, first.clone()), (1, false, second)]);
    let third =
        open(fixture.engine_files.database(), "a third node", &fixture.clock).await.expect("one is free");
    assert_eq!(listed(&third).await, [(0, true, first), (1, true, None)]);
    third.describe_node(&description("mx3.example.com")).await.expect("the store works");
    let settings = "SELECT count(*) FROM settings WHERE key LIKE 'node.%'";
    assert_eq!(fixture.query_int(settings).await, 2, "the description of the second is removed");
}
