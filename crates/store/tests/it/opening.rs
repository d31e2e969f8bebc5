//! Opening a store that is empty, existing, of a newer version or in use; and opening it as a tool.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use postroad_store::{Database, OpenError, Role, Store, StoreError};

use crate::fixture::{EngineFiles, Fixture, IDENTITY, on_both_engines, open, settings};

on_both_engines!(
    newer_schema_is_refused_and_left_alone,
    migrations_run_once,
    tool_creates_accounts_and_on_postgresql_accepts_no_mail,
);

async fn newer_schema_is_refused_and_left_alone(fixture: Fixture) {
    let bump = match &fixture.engine_files {
        EngineFiles::Sqlite(_) => "PRAGMA user_version = 4711",
        EngineFiles::Postgres(_) => "INSERT INTO schema_version VALUES (4711)",
    };
    let Fixture { store, clock, engine_files, .. } = fixture;
    drop(store);
    match &engine_files {
        EngineFiles::Sqlite(_) => {
            let connection =
                rusqlite::Connection::open(engine_files.sqlite_path()).expect("the file is there");
            connection.execute_batch(bump).expect("the statement is good");
        }
        EngineFiles::Postgres(database) => {
            crate::fixture::connect(database.url()).await.batch_execute(bump).await.expect("the store works");
        }
    }
    let refused = open(engine_files.database(), IDENTITY, &clock).await.expect_err("it is newer");
    assert!(
        matches!(refused, OpenError::NewerSchema { found: 4711, known } if known == versions()),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("schema version 4711"), "{refused}");
    let version: i64 = match &engine_files {
        EngineFiles::Sqlite(_) => {
            let connection =
                rusqlite::Connection::open(engine_files.sqlite_path()).expect("the file is there");
            connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("it has a version")
        }
        EngineFiles::Postgres(database) => {
            let client = crate::fixture::connect(database.url()).await;
            let row = client.query_one("SELECT max(version) FROM schema_version", &[]).await;
            row.expect("the store works").get(0)
        }
    };
    assert_eq!(version, 4711);
}

/// Number of migrations, each of which is a file.
fn versions() -> i64 {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite");
    std::fs::read_dir(folder).expect("the folder is there").count() as i64
}

async fn migrations_run_once(fixture: Fixture) {
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    let fixture = fixture.reopen().await.reopen().await;
    assert_eq!(fixture.store.list_servers().await.expect("the store works").len(), 2);
    let version = match &fixture.engine_files {
        EngineFiles::Sqlite(_) => "SELECT user_version FROM pragma_user_version",
        EngineFiles::Postgres(_) => {
            "SELECT CASE WHEN max(version) = count(*) THEN count(*) END FROM schema_version"
        }
    };
    assert_eq!(fixture.query_int(version).await, versions());
}

async fn tool_creates_accounts_and_on_postgresql_accepts_no_mail(fixture: Fixture) {
    let send = fixture.send_to(&["ann@example.com"]);
    let Fixture { store, clock, engine_files, .. } = fixture;
    drop(store);
    let clock = Arc::new(clock);
    let tool =
        Store::open(settings(engine_files.database()), Role::Tool, clock).await.expect("the store works");
    tool.create_account("From the command line".into()).await.expect("the store works");
    assert_eq!(tool.list_accounts().await.expect("the store works").len(), 2);
    // Ids of messages contain the number of their node, and a tool has none. On SQLite there is only one node.
    if matches!(engine_files, EngineFiles::Postgres(_)) {
        assert!(matches!(tool.ids(), Err(StoreError::Internal(_))));
        assert!(tool.accept(send).await.is_err());
    }
}

#[tokio::test]
async fn second_process_on_a_sqlite_file_is_kept_out() {
    let fixture = Fixture::sqlite().await;
    let second = open(fixture.engine_files.database(), IDENTITY, &fixture.clock).await.unwrap_err();
    assert!(matches!(second, OpenError::Locked(_)), "{second:?}");
    // The first one still works, and the file is free when it is closed.
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    fixture.reopen().await;
}

/// Changes in the writer's queue are written before the file is free for the next process, answered or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_waits_for_queued_changes() {
    let fixture = Fixture::sqlite().await;
    let sends: Vec<_> = (0..200).map(|_| fixture.send_to(&["ann@example.com"])).collect();
    let last_id = fixture.store.ids().expect("a node has ids").last();
    for send in sends {
        // Polled once: it is in the writer's queue, and nobody waits for the answer.
        let _ = tokio::time::timeout(std::time::Duration::ZERO, fixture.store.accept(send)).await;
    }
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.row_counts().await["messages"], 200);
    assert!(fixture.store.ids().expect("a node has ids").next() > last_id);
}

#[tokio::test]
async fn files_are_for_the_owner_only() {
    let fixture = Fixture::sqlite().await;
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    let path = fixture.engine_files.sqlite_path();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&path.with_extension("db-wal")), 0o600);
}

#[tokio::test]
async fn too_little_free_disk_refuses_new_mail_but_no_outcomes() {
    let fixture = Fixture::sqlite().await;
    let id = fixture.accept(fixture.send_to(&["ann@example.com"])).await[0];
    let Fixture { store, clock, account, server, other_server, engine_files } = fixture;
    drop(store);
    let mut settings = settings(engine_files.database());
    settings.disk_reserve_bytes = u64::MAX;
    let role = Role::Node { identity: IDENTITY.into() };
    let store = Store::open(settings, role, Arc::new(clock.clone())).await.expect("the store works");
    let fixture = Fixture { store, clock, account, server, other_server, engine_files };
    let refused = fixture.store.accept(fixture.send_to(&["ann@example.com"])).await;
    assert!(crate::fixture::is_unavailable(&refused), "{refused:?}");
    assert_eq!(fixture.claim_due().await.len(), 1);
    assert!(fixture.finish(fixture.outcome(id, postroad_model::Status::Sent)).await);
}

#[test]
fn database_names_are_parsed() {
    let sqlite = |path: &str| Database::Sqlite(path.into());
    assert_eq!(Database::parse("sqlite:data/p.db").unwrap(), sqlite("data/p.db"));
    assert_eq!(Database::parse("sqlite:///var/p.db").unwrap(), sqlite("/var/p.db"));
    for url in ["postgres://u@h/d", "postgresql://u@h/d"] {
        assert_eq!(Database::parse(url).unwrap(), Database::Postgres(url.to_owned()));
    }
    for bad in ["", "sqlite:", "mysql://h/d", "data/p.db"] {
        assert!(matches!(Database::parse(bad), Err(OpenError::BadUrl(_))), "{bad:?} was accepted");
    }
}

#[tokio::test]
async fn several_nodes_may_migrate_an_empty_database_at_once() {
    let database = postroad_testkit::Database::create();
    let clock = postroad_testkit::ManualClock::default();
    let opened = futures_util::future::join_all((0..4).map(|n| {
        let (url, clock) = (database.url().to_owned(), clock.clone());
        async move { open(Database::Postgres(url), &format!("node {n}"), &clock).await }
    }));
    for store in opened.await {
        store.unwrap();
    }
}
