//! The cost of a message on PostgreSQL does not grow with the history or the backlog. The test counts the rows that the
//! database reads while it believes its tables to be small.

use postroad_testkit::eventually;

use postroad_model::{MessageId, Status};
use postroad_store::{BeginRequest, BeginResult, Outcome};

use crate::counting::rules;
use crate::fixture::{EngineFiles, Fixture, IDENTITY, connect, open};

const ROWS_READ: &str = "SELECT ((SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables)
    + (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes))::bigint";
const STORE_CONNECTIONS: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'postroad'";

/// Number of messages; each has two events.
const HISTORY: usize = 5_000;
const BATCH: usize = 100;

/// Number of rows read so far. Closes the store first, because backends report their reads when they end, and opens it
/// again.
async fn rows_read(fixture: Fixture) -> (Fixture, i64) {
    let Fixture { store, clock, account, server, other_server, engine_files } = fixture;
    drop(store);
    let EngineFiles::Postgres(database) = &engine_files else { panic!("this is SQLite") };
    let client = connect(database.url()).await;
    let query_int =
        async |text: &str| -> i64 { client.query_one(text, &[]).await.expect("it answers").get(0) };
    eventually(async || match query_int(STORE_CONNECTIONS).await {
        0 => Ok(()),
        others => Err(format!("{others} connections of a store that is closed")),
    })
    .await;
    let read = query_int(ROWS_READ).await;
    // The planner must believe these tables to be empty. Dead rows would be read again while any transaction of the
    // cluster may still see them.
    client.batch_execute("VACUUM ANALYZE queue").await.expect("nobody is in the way");
    client.batch_execute("VACUUM ANALYZE suppressions").await.expect("nobody is in the way");
    let store = open(engine_files.database(), IDENTITY, &clock).await.expect("the store opens again");
    (Fixture { store, clock, account, server, other_server, engine_files }, read)
}

/// Accepts, claims, begins and finishes this many messages.
async fn send_all(fixture: &Fixture, messages: usize, needs_message: bool) {
    let addresses: Vec<String> = (0..messages).map(|number| format!("ann{number}@example.com")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let ids: Vec<MessageId> = fixture.accept(fixture.send_to(&addresses)).await;
    assert_eq!(fixture.claim_due().await.len(), messages);
    let begin =
        |id| BeginRequest { server_id: fixture.server, message_id: id, due_at: fixture.now(), needs_message };
    let begun = fixture.store.begin(ids.iter().copied().map(begin).collect()).await.expect("beginning works");
    assert!(begun.iter().all(|begun| matches!(begun, BeginResult::Go(_))));
    let outcomes: Vec<Outcome> = ids.iter().map(|id| fixture.outcome(*id, Status::Sent)).collect();
    let settled = fixture.store.finish(outcomes).await.expect("finishing works");
    assert!(settled.into_iter().all(|settled| settled));
}

/// Inserts other claims of this node.
const OTHER_CLAIMS: &str =
    "INSERT INTO queue (server_id, message_id, domain, due_at, attempts, claimed_node, claimed_epoch)
    SELECT s.id, number, 'example.com', 0, 0, n.node, n.epoch
    FROM servers s, nodes n, generate_series(1, 5000) AS number WHERE s.name = 'Live' AND n.owner <> ''";
const SUPPRESSED: &str = "INSERT INTO suppressions (server_id, address, reason, details, created_at)
    SELECT s.id, 'bob' || number || '@example.com', 'manual', '', 0
    FROM servers s, generate_series(1, 5000) AS number WHERE s.name = 'Live'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_reads_its_own_rows_and_not_the_history() {
    let fixture = Fixture::postgres().await;
    for _ in 0..HISTORY / BATCH {
        send_all(&fixture, BATCH, false).await;
    }
    let (fixture, before) = rows_read(fixture).await;
    // Now plans are kept that were made for an empty queue.
    send_all(&fixture, 5, false).await;
    fixture.execute(OTHER_CLAIMS).await;
    fixture.execute(SUPPRESSED).await;
    for needs_message in [false, true, false, true] {
        send_all(&fixture, 5, needs_message).await;
        fixture.store.reap().await.expect("reaping works");
        fixture.store.list_uncounted_servers().await.expect("reading works");
    }
    // At most 2,000 events, with their messages and sends; the history has five times as many.
    fixture.store.count_events(fixture.server, &rules()).await.expect("counting works");
    let (_fixture, after) = rows_read(fixture).await;
    let read = after - before;
    assert!(read < 2 * HISTORY as i64, "{read} rows were read for 25 messages and 2,000 events");
}
