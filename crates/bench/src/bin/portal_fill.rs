//! Completes a SQLite store that `analytics_fill` filled, for the pages of the portal: `portal_fill --database sqlite:PATH`.
//!
//! Makes some messages of the first server held, delayed or bounced; delayed ones wait in the queue. Suppressions and
//! webhook attempts are written directly into the tables. The store then adds all messages to its search index, as in a
//! running service.

use std::sync::Arc;
use std::time::{Duration, Instant};

use postroad_model::{Clock, EventSet, SystemClock, WebhookFormat};
use postroad_store::{
    BLOCKS_PER_MERGE, Database, IndexProgress, NewWebhook, Role, Settings, Store, WebhookSecret,
};
use rusqlite::{Connection, params};

const BLOCK_MESSAGES: usize = 4_096;

#[tokio::main(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let at = arguments.iter().position(|argument| argument == "--database");
    let url = at.and_then(|at| arguments.get(at + 1)).expect("--database sqlite:PATH is given");
    let database = Database::parse(url).expect("the database is understood");
    let Database::Sqlite(path) = database.clone() else { panic!("it fills SQLite only") };

    let store = open(database).await;
    let servers = store.list_servers().await.expect("the store can be read");
    let server = servers.first().expect("the store has a server").id;
    let webhook = NewWebhook {
        server_id: server,
        url: "http://127.0.0.1:9/events".into(),
        events: EventSet::ALL,
        format: WebhookFormat::Standard,
        // Disabled, so that the running service does not post.
        enabled: false,
        secret: WebhookSecret("whsec_one".into()),
    };
    let webhook = store.create_webhook(webhook).await.expect("the store works").id;

    let begun = Instant::now();
    let connection = Connection::open(&path).expect("the file is there");
    connection.pragma_update(None, "synchronous", "OFF").expect("a setting of SQLite");
    let now = SystemClock.now();
    let later = now.plus(Duration::from_hours(24 * 10)).as_micros();
    let run = |text: &str, values: &[&dyn rusqlite::ToSql]| {
        connection.execute(text, values).expect("a good statement");
    };
    for (status, every) in [("Held", 1_009), ("Bounced", 53), ("SoftFail", 101)] {
        let text = "UPDATE messages SET status = ?2 WHERE server_id = ?1 AND id % ?3 = 0";
        run(text, params![server.0, status, every]);
    }
    run(
        "INSERT INTO queue (server_id, message_id, domain, due_at, attempts)
         SELECT server_id, id, substr(rcpt_to, instr(rcpt_to, '@') + 1), ?2 + id % 1000000, 1 FROM messages
         WHERE server_id = ?1 AND status = 'SoftFail'",
        params![server.0, later],
    );
    run(
        "INSERT INTO suppressions (server_id, address, reason, details, created_at)
         SELECT server_id, 'user' || id || '@example.net', 'hard_bounce', 'no such mailbox', ?2 + id % 1000000
         FROM messages WHERE server_id = ?1 AND status = 'Bounced'",
        params![server.0, now.as_micros()],
    );
    run(
        "INSERT INTO webhook_attempts (server_id, id, webhook_id, event_id, message_id, kind, at, number, url, status,
             answer, duration_us)
         SELECT server_id, id, ?2, id, message_id, kind, at, 1, 'http://127.0.0.1:9/events', 200, 'ok', 900 FROM events
         WHERE server_id = ?1 AND id % 7 = 0",
        params![server.0, webhook.0],
    );
    drop(connection);
    println!("queue, suppressions and attempts written in {:.0} s", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let mut blocks = 0_u32;
    while store.index_next_block(server, BLOCK_MESSAGES).await.expect("indexing works")
        == IndexProgress::Added
    {
        blocks += 1;
    }
    while store.check_next_block().await.expect("checking works").is_some() {}
    while store.merge_next_blocks(server, BLOCKS_PER_MERGE).await.expect("merging works")
        == IndexProgress::Added
    {}
    println!("{blocks} blocks indexed and merged in {:.0} s", begun.elapsed().as_secs_f64());
}

async fn open(database: Database) -> Store {
    let settings = Settings { reader_threads: 2, ..Settings::small(database) };
    let role = Role::Node { identity: "portal_fill".into() };
    Store::open(settings, role, Arc::new(SystemClock)).await.expect("the store opens")
}
