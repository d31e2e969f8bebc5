//! A dump restored into another cluster, whose transaction numbers start again: everything continues where it was.

use std::process::{Command, Stdio};

use postroad_model::{EventCursor, EventKind, EventSet, MessageId, Status};
use postroad_store::{FeedQuery, Grain, Metric};
use postroad_testkit::postgres::find_server_programs;
use postroad_testkit::{Cluster, Database, eventually};

use crate::counting::{count_all_events, totals};
use crate::fixture::{EngineFiles, Fixture, open};
use crate::webhooks;

/// Uses up 5,000 transaction numbers, more than a new cluster has used after a restore.
const TRANSACTIONS_BEFORE: &str =
    "DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$";
const HIGHEST_XACT: &str = "SELECT max(xact) FROM events";
const CURRENT_XACT: &str = "SELECT pg_current_xact_id()::text::bigint";

/// Moves the fixture's database to this cluster, and opens it there.
async fn restore_to(cluster: &Cluster, fixture: Fixture) -> Fixture {
    let Fixture { store, clock, account, server, other_server, engine_files } = fixture;
    drop(store);
    let EngineFiles::Postgres(old) = &engine_files else { unreachable!("it was made on PostgreSQL") };
    let new = Database::create_on(cluster.url());
    // PATH may have links to some of the programs only.
    let initdb = find_server_programs().expect("the cluster has them too").join("initdb");
    let initdb = initdb.canonicalize().expect("it is there");
    let mut dump = Command::new(initdb.with_file_name("pg_dump"))
        .args(["--no-owner", "--dbname", old.url()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("pg_dump is beside the server");
    let dumped = dump.stdout.take().expect("it is piped");
    let restored = Command::new(initdb.with_file_name("psql"))
        .args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", new.url()])
        .stdin(dumped)
        .stdout(Stdio::null())
        .status()
        .expect("psql is beside the server");
    assert!(restored.success() && dump.wait().expect("it was started").success());
    let engine_files = EngineFiles::Postgres(new);
    // Several nodes open it at once: one of them notices the new cluster.
    let other_node = open(engine_files.database(), "another node", &clock);
    let (store, other_node) =
        tokio::join!(open(engine_files.database(), crate::fixture::IDENTITY, &clock), other_node);
    other_node.expect("the store opens");
    Fixture { store: store.expect("the store opens"), clock, account, server, other_server, engine_files }
}

async fn send_message(fixture: &Fixture) -> MessageId {
    let id = fixture.accept_and_claim().await;
    assert!(fixture.finish(fixture.outcome(id, Status::Sent)).await);
    id
}

/// Messages of the events after the cursor, once `wanted` events came, and the cursor of the last event.
async fn read(fixture: &Fixture, after: EventCursor, wanted: usize) -> (Vec<MessageId>, EventCursor) {
    let query =
        FeedQuery { server_id: fixture.server, after, kinds: EventSet::ALL, message_id: None, limit: 100 };
    eventually(async || {
        let page = fixture.store.feed(query).await.expect("the store works");
        if page.events.len() < wanted {
            return Err(format!("{} of {wanted} events came", page.events.len()));
        }
        Ok((page.events.iter().map(|event| event.message_id).collect(), page.next))
    })
    .await
}

async fn counted(fixture: &Fixture) -> u64 {
    count_all_events(fixture).await;
    totals(fixture, Grain::Day).await.values().map(|sums| sums.counts.of(Metric::Sent)).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_dump_continues_in_another_cluster() {
    let fixture = Fixture::postgres().await;
    let webhook = webhooks::create(&fixture, [EventKind::Delivered].into_iter().collect()).await;
    fixture.execute(TRANSACTIONS_BEFORE).await;
    let counted_before = send_message(&fixture).await;
    assert_eq!(counted(&fixture).await, 1);
    let (first, read_before) = read(&fixture, EventCursor::START, 2).await;
    assert_eq!(first, [counted_before; 2]);
    // The events of this message are neither counted nor read nor posted before the dump.
    let waiting = send_message(&fixture).await;

    let cluster = Cluster::start().expect("PostgreSQL starts");
    let fixture = restore_to(&cluster, fixture).await;
    assert!(
        fixture.query_int(HIGHEST_XACT).await > fixture.query_int(CURRENT_XACT).await,
        "else the test proves nothing"
    );

    let end = fixture.store.feed_end(fixture.server).await.expect("the store works");
    assert!(end > read_before);
    let later = send_message(&fixture).await;
    // Old cursors continue without a gap or a repetition, even a cursor at the end; new readers get the same order.
    let (rest, behind) = read(&fixture, read_before, 4).await;
    assert_eq!(rest, [waiting, waiting, later, later]);
    assert_eq!(read(&fixture, end, 2).await.0, [later; 2]);
    assert_eq!(read(&fixture, EventCursor::START, 6).await.0[2..], rest);
    assert_eq!(counted(&fixture).await, 3);
    let works = webhooks::claim(&fixture, &webhook).await;
    let posted: Vec<MessageId> = works.iter().map(|work| work.event.message_id).collect();
    assert_eq!(posted, [counted_before, waiting, later]);

    // Opened again in the same cluster: the gap between clusters (`GAP` in `event_order.rs`) is not added again.
    let highest = fixture.query_int(HIGHEST_XACT).await;
    let fixture = fixture.reopen().await;
    let last = send_message(&fixture).await;
    assert_eq!(read(&fixture, behind, 2).await.0, [last; 2]);
    assert!(fixture.query_int(HIGHEST_XACT).await - highest < 1_000_000);
    assert_eq!(counted(&fixture).await, 4);
}
