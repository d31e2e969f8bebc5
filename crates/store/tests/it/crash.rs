//! kill -9 under load: everything acknowledged is stored, and nothing is half-written.

use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{Clock as _, EventKind, MessageId, SendId, ServerId, Status, SystemClock};
use postroad_store::{Accepted, Database, Idempotency, InitialState, Role, Store, StoredAnswer};
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};

use crate::child;
use crate::fixture::{EngineFiles, Fixture, IDENTITY, new_send, on_both_engines, settings};

const ROUNDS: usize = 5;
const CALLERS: usize = 64;

on_both_engines!(acknowledged_messages_survive_kill_9);

struct Acknowledged {
    send: SendId,
    message: MessageId,
}

async fn acknowledged_messages_survive_kill_9(mut fixture: Fixture) {
    let mut all: Vec<Acknowledged> = Vec::new();
    for _ in 0..ROUNDS {
        let Fixture { store, clock, account, server, other_server, engine_files } = fixture;
        drop(store);
        let enough = rand::rng().random_range(1..600);
        let acknowledged = tokio::task::spawn_blocking({
            let database = engine_files.database();
            move || run_and_kill(&database, server, enough)
        });
        let acknowledged = acknowledged.await.expect("the round does not panic");
        assert!(acknowledged.len() >= enough, "{} of {enough} acknowledged", acknowledged.len());
        let highest = acknowledged.iter().map(|ack| ack.message.0.max(ack.send.0)).max().unwrap_or(0);

        let role = Role::Node { identity: IDENTITY.into() };
        let store = Store::open(settings(engine_files.database()), role, Arc::new(SystemClock)).await;
        let store = store.expect("the store opens after a crash");
        fixture = Fixture { store, clock, account, server, other_server, engine_files };
        assert!(fixture.store.ids().expect("a node has ids").next() > highest, "ids continue above");
        all.extend(acknowledged);
        check(&fixture, &all).await;
    }
}

/// Starts the child, reads `enough` acknowledgements, and kills it; then reads those still in the pipe.
fn run_and_kill(database: &Database, server: ServerId, enough: usize) -> Vec<Acknowledged> {
    let database = match database {
        Database::Sqlite(path) => format!("sqlite:{}", path.display()),
        Database::Postgres(url) => url.clone(),
    };
    let mut child = child::command("crash::child", &format!("{server} {database}"))
        .spawn()
        .expect("this program can be started");
    let output = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut acknowledged = Vec::new();
    for line in output.lines() {
        // The last line may be cut off by the kill: then it was not reported.
        let line = line.expect("acknowledgements are text");
        let Some((send, message)) =
            line.strip_prefix("ack ").and_then(|rest| rest.strip_suffix(" end")?.split_once(' '))
        else {
            continue;
        };
        let id = |text: &str| text.parse::<i64>().expect("ids are numbers");
        acknowledged.push(Acknowledged { send: SendId(id(send)), message: MessageId(id(message)) });
        if acknowledged.len() == enough {
            // SIGKILL: no destructor, no flush.
            child.kill().expect("our child can be killed");
        }
    }
    child.wait().expect("our child can be waited for");
    acknowledged
}

async fn check(fixture: &Fixture, acknowledged: &[Acknowledged]) {
    let mut tasks = tokio::task::JoinSet::new();
    for part in acknowledged.chunks(acknowledged.len().div_ceil(8)) {
        let (store, server) = (fixture.store.clone(), fixture.server);
        let part: Vec<_> = part.iter().map(|ack| (ack.send, ack.message)).collect();
        tasks.spawn(async move {
            for (send, id) in part {
                check_one(&store, server, send, id).await;
            }
        });
    }
    tasks.join_all().await;
    // Messages that were stored but not acknowledged are whole too.
    for count_of_partial in [
        "SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM sends s WHERE s.id = m.send_id)",
        "SELECT count(*) FROM sends s WHERE NOT EXISTS (SELECT 1 FROM bodies b WHERE b.send_id = s.id)",
        "SELECT count(*) FROM bodies b WHERE NOT EXISTS (SELECT 1 FROM sends s WHERE s.id = b.send_id)",
        "SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.message_id = m.id)",
        "SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM queue q WHERE q.message_id = m.id)",
        "SELECT count(*) - (SELECT count(*) FROM idempotency_keys) FROM sends WHERE id % 2 = 0",
    ] {
        assert_eq!(fixture.query_int(count_of_partial).await, 0, "{count_of_partial}");
    }
    if let EngineFiles::Sqlite(_) = &fixture.engine_files {
        let connection =
            rusqlite::Connection::open(fixture.engine_files.sqlite_path()).expect("the file is there");
        let verdict: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("it can be checked");
        assert_eq!(verdict, "ok");
    }
}

async fn check_one(store: &Store, server: ServerId, send: SendId, id: MessageId) {
    let message = store.find_message(server, id).await.expect("the store works");
    let message = message.unwrap_or_else(|| panic!("the acknowledged message {id} is gone"));
    assert_eq!((message.status, message.send.id), (Status::Pending, send));
    assert_eq!(message.next_attempt_at, Some(message.send.created_at), "{id} is queued");
    let events = store.list_events(server, id).await.expect("the store works");
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].seq, events[0].kind), (1, EventKind::Accepted));
    let body = store.read_body(server, send, message.send.size).await.expect("the store works");
    assert!(body == body_of(send), "the body of {send} differs");
    let key = store.find_idempotent_answer(server, format!("key {send}")).await.expect("the store works");
    let answer = StoredAnswer { fingerprint: [7; 32], answer: send.to_string() };
    assert_eq!(key, has_key(send).then_some(answer));
}

/// PostgreSQL accepts sends with and without an idempotency key in different ways.
fn has_key(send: SendId) -> bool {
    send.0 % 2 == 0
}

/// Body of a send, random but always the same. One in twenty is too large for a row of SQLite.
fn body_of(send: SendId) -> Vec<u8> {
    let mut rng = SmallRng::seed_from_u64(send.0 as u64);
    let size = if rng.random_bool(0.05) { 70_000 } else { rng.random_range(0..4_000) };
    let mut body = vec![0; size];
    rng.fill_bytes(&mut body);
    body
}

/// The process that is killed. Does nothing unless its parent asks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Some(task) = child::task() else { return };
    let (server, database) = task.split_once(' ').expect("the parent gives two words");
    let server = ServerId(server.parse().expect("a server's id"));
    let database = Database::parse(database).expect("a database");
    let role = Role::Node { identity: IDENTITY.into() };
    let store = Store::open(settings(database), role, Arc::new(SystemClock)).await.expect("the store opens");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let store = store.clone();
        tasks.spawn(async move {
            loop {
                accept_one(&store, server).await;
            }
        });
    }
    tasks.join_all().await;
}

async fn accept_one(store: &Store, server: ServerId) {
    let mut send =
        new_send(store, server, SystemClock.now(), &["ann@example.com"], InitialState::Pending, b"");
    let body = body_of(send.info.id);
    send.info.size = body.len() as u64;
    send.body = postroad_store::StoredBody::compress(body.clone()).expect("zstd compresses anything");
    send.idempotency = has_key(send.info.id).then(|| Idempotency {
        key: format!("key {}", send.info.id),
        fingerprint: [7; 32],
        answer: send.info.id.to_string(),
        expires_at: SystemClock.now().plus(Duration::from_hours(24)),
    });
    let line = format!("ack {} {} end\n", send.info.id, send.recipients[0].id);
    assert_eq!(store.accept(send).await.expect("it is accepted"), Accepted::Stored(Vec::new()));
    // One write per line: whole lines only, even if this process is killed.
    std::io::stdout().lock().write_all(line.as_bytes()).expect("the parent listens");
}
