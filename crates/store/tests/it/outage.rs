//! Full disk and dead database: callers are asked to try again, nothing is half-written, and the store recovers by
//! itself.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use postroad_model::Status;
use postroad_store::{Accepted, BeginRequest, BeginResult, ClaimSkips, Database, InitialState, NewSend};
use postroad_testkit::{PgProxy, eventually, eventually_within};
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use crate::bodies::files_below;
use crate::child;
use crate::fixture::{EngineFiles, Fixture, is_unavailable, message_ids};

#[test]
fn full_disk_is_survived_on_sqlite() {
    let output = child::command("outage::full_disk_child", "full disk").output().expect("it can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{text}", output.status);
    assert!(text.contains("the disk was full and is not any more"), "{text}");
}

/// Limits the size of files that this process writes; writes beyond it fail as on a full disk.
fn limit_files(bytes: Option<u64>) {
    let soft = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    let pid = std::process::id().to_string();
    let status = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={soft}:")]).status();
    assert!(status.expect("util-linux is there").success());
}

/// Runs in a separate process, because the limit applies to the whole process. Does nothing unless its parent asks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_child() {
    if child::task().is_none() {
        return;
    }
    let fixture = Fixture::sqlite().await;
    let first = fixture.accept_and_claim().await;
    let before = fixture.row_counts().await;
    let last_id = fixture.store.ids().expect("a node has ids").last();
    let path = fixture.engine_files.sqlite_path();
    let bodies = path.with_file_name("bodies");
    let log_bytes = fs::metadata(path.with_extension("db-wal")).expect("the log is there").len();
    assert!(log_bytes > 80_000, "a body of this size must still fit: {log_bytes}");

    // The log cannot grow; a body file of up to the same size can still be written, a larger one cannot.
    limit_files(Some(log_bytes));
    for bytes in [10, 5_000, 70_000, 1_000_000] {
        for _ in 0..3 {
            let refused = fixture.store.accept(random_send(&fixture, bytes)).await;
            assert!(is_unavailable(&refused), "{bytes}: {refused:?}");
        }
    }
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..50 {
        let (store, send) = (fixture.store.clone(), fixture.send_with_key(&format!("k{}", n % 25), 1, "a"));
        tasks.spawn(async move { store.accept(send).await });
    }
    for refused in tasks.join_all().await {
        assert!(is_unavailable(&refused), "{refused:?}");
    }
    let refused = fixture.store.finish(vec![fixture.outcome(first, Status::Sent)]).await;
    assert!(is_unavailable(&refused), "{refused:?}");
    let refused = fixture.store.create_account("Full".into()).await;
    assert!(is_unavailable(&refused), "{refused:?}");
    // Reading goes on, and shows that nothing was written.
    assert_eq!(fixture.message(first).await.status, Status::Pending);
    assert_eq!(fixture.store.list_accounts().await.expect("the store works").len(), 1);

    limit_files(None);
    assert_eq!(fixture.row_counts().await, before);
    let mut sends: Vec<NewSend> = [10, 5_000, 70_000].map(|bytes| random_send(&fixture, bytes)).into();
    sends.push(fixture.send_with_key("k0", 1, "a"));
    for send in sends {
        assert!(message_ids(&send)[0].0 > last_id);
        fixture.accept(send).await;
    }
    assert!(fixture.finish(fixture.outcome(first, Status::Sent)).await, "the claim was not lost");
    assert_eq!(fixture.row_counts().await["sends"], before["sends"] + 4);
    assert_eq!(files_below(&bodies).len(), 1, "bodies of refused sends are removed");
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.row_counts().await["sends"], before["sends"] + 4);
    println!("the disk was full and is not any more");
}

fn random_send(fixture: &Fixture, bytes: usize) -> NewSend {
    let mut message = vec![0; bytes];
    SmallRng::seed_from_u64(bytes as u64).fill_bytes(&mut message);
    fixture.send(fixture.server, &["ann@example.com"], InitialState::Pending, &message)
}

struct Outage {
    fixture: Fixture,
    proxy: PgProxy,
}

impl Outage {
    async fn prepare() -> Self {
        let database = postroad_testkit::Database::create();
        let proxy = PgProxy::start(database.url());
        let proxied = Database::Postgres(proxy.url().to_owned());
        let fixture = Fixture::through(EngineFiles::Postgres(database), proxied).await;
        fixture.accept(fixture.send_to(&["ann@example.com"])).await;
        fixture.accept(fixture.send_with_key("before", 1, "a")).await;
        Self { fixture, proxy }
    }

    /// Every operation fails with "try again", within `timeout`.
    async fn expect_unavailable(&self, timeout: Duration) {
        let fixture = &self.fixture;
        let (with_key, without) =
            (fixture.send_with_key("during", 1, "b"), fixture.send_to(&["a@example.com", "b@example.com"]));
        let begun = Instant::now();
        let (with_key, without, claim, read, write) = tokio::join!(
            fixture.store.accept(with_key),
            fixture.store.accept(without),
            fixture.store.claim(fixture.now(), 10, ClaimSkips::default()),
            fixture.store.list_accounts(),
            fixture.store.set_setting("maintenance", Some("on".into())),
        );
        assert!(is_unavailable(&with_key), "{with_key:?}");
        assert!(is_unavailable(&without), "{without:?}");
        assert!(is_unavailable(&claim), "{claim:?}");
        assert!(is_unavailable(&read), "{read:?}");
        assert!(is_unavailable(&write), "{write:?}");
        assert!(begun.elapsed() < timeout, "it took {:?}", begun.elapsed());
    }

    async fn expect_recovery(&self) {
        let fixture = &self.fixture;
        let accepted = eventually_within(Duration::from_secs(10), async || {
            let accepted = fixture.store.accept(fixture.send_to(&["later@example.com"])).await;
            accepted.map_err(|error| format!("nothing is accepted: {error}"))
        });
        assert_eq!(accepted.await, Accepted::Stored(Vec::new()));
        let again =
            fixture.store.accept(fixture.send_with_key("before", 1, "c")).await.expect("the store works");
        assert!(matches!(again, Accepted::Repeated(stored) if stored.answer == "a"));
        fixture.store.set_setting("maintenance", None).await.expect("the store works");
        assert!(!fixture.claim_due().await.is_empty());
    }

    /// A send whose answer was lost is there with all its rows or with none.
    async fn expect_whole_or_nothing(&self) {
        for count_of_partial in [
            "SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM sends s WHERE s.id = m.send_id)",
            "SELECT count(*) FROM sends s WHERE NOT EXISTS (SELECT 1 FROM bodies b WHERE b.send_id = s.id)",
            "SELECT count(*) FROM sends s WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.send_id = s.id)",
            "SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.message_id = m.id)",
            "SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM queue q WHERE q.message_id = m.id)",
        ] {
            assert_eq!(self.fixture.query_int(count_of_partial).await, 0, "{count_of_partial}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_postgres_is_survived() {
    let outage = Outage::prepare().await;
    let before = outage.fixture.row_counts().await;
    outage.proxy.cut();
    for _ in 0..2 {
        Box::pin(outage.expect_unavailable(Duration::from_secs(5))).await;
    }
    assert_eq!(outage.fixture.row_counts().await, before, "nothing was written");
    outage.proxy.restore();
    outage.expect_recovery().await;
    outage.expect_whole_or_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_postgres_is_survived() {
    let outage = Outage::prepare().await;
    outage.proxy.stall();
    Box::pin(outage.expect_unavailable(Duration::from_secs(9))).await;
    outage.proxy.restore();
    outage.expect_recovery().await;
    outage.expect_whole_or_nothing().await;
}

/// The connection dies in the middle of batches, again and again. Every acknowledged send is stored; every other send
/// is stored whole or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_that_dies_under_load_loses_nothing() {
    let outage = Outage::prepare().await;
    let fixture = &outage.fixture;
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..32 {
        let sends: Vec<NewSend> = (0..30)
            .map(|n| match caller % 2 {
                0 => fixture.send_with_key(&format!("{caller} {n}"), 1, "a"),
                _ => fixture.send_to(&["a@example.com", "b@example.com", "c@example.com"]),
            })
            .collect();
        let store = fixture.store.clone();
        tasks.spawn(async move {
            let mut stored = Vec::new();
            for send in sends {
                let ids = message_ids(&send);
                match store.accept(send).await {
                    Ok(accepted) => {
                        assert_eq!(accepted, Accepted::Stored(Vec::new()));
                        stored.extend(ids);
                    }
                    Err(error) => assert!(is_unavailable(&Err::<(), _>(error.clone())), "{error:?}"),
                }
            }
            stored
        });
    }
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(15)).await;
        outage.proxy.cut();
        outage.proxy.restore();
    }
    let stored = tasks.join_all().await.concat();
    assert!(!stored.is_empty());
    for id in stored {
        fixture.message(id).await;
    }
    outage.expect_recovery().await;
    outage.expect_whole_or_nothing().await;
}

/// Waits until `count` statements of the database sleep.
async fn until_sleeping(fixture: &Fixture, count: i64) {
    let sleeping =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    eventually(async || {
        let found = fixture.query_int(sleeping).await;
        if found == count { Ok(()) } else { Err(format!("{found} statements sleep, not {count}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_nobody_waits_for_any_more_is_cancelled_on_postgres() {
    let fixture = Fixture::postgres().await;
    let message_id = fixture.accept_and_claim().await;
    let slow = "CREATE FUNCTION take_a_minute() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END'";
    fixture.execute(slow).await;
    let trigger = "CREATE TRIGGER slow BEFORE UPDATE ON queue FOR EACH ROW EXECUTE FUNCTION take_a_minute()";
    fixture.execute(trigger).await;
    let begin =
        BeginRequest { server_id: fixture.server, message_id, due_at: fixture.now(), needs_message: false };
    let (store, request) = (fixture.store.clone(), begin.clone());
    let beginning = tokio::spawn(async move { store.begin(vec![request]).await });
    until_sleeping(&fixture, 1).await;
    beginning.abort();
    until_sleeping(&fixture, 0).await;
    fixture.execute("DROP TRIGGER slow ON queue").await;
    let begun = fixture.store.begin(vec![begin]).await.expect("the store works");
    assert!(matches!(begun[..], [BeginResult::Go(_)]), "the cancelled statement changed nothing: {begun:?}");
}
