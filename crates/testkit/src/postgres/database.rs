//! Fresh database for one test, dropped with it.

use std::sync::mpsc;
use std::thread;

use postroad_test_programs::POSTGRES_VARIABLE;
use tokio_postgres::{Client, NoTls};

/// Database of one test. Its name is unique, so that tests run in parallel.
#[derive(Debug)]
pub struct Database {
    server_url: String,
    name: String,
    url: String,
}

impl Database {
    /// Creates a database. Blocks for some tens of milliseconds; callable inside and outside a tokio runtime.
    pub fn create() -> Self {
        let server_url = std::env::var(POSTGRES_VARIABLE).unwrap_or_else(|_| {
            panic!(
                "{POSTGRES_VARIABLE} is not set: run the tests with `cargo xtask test`, which starts PostgreSQL"
            )
        });
        Self::create_on(&server_url)
    }

    /// Creates a database on this server, which may be another one than the test run's own.
    pub fn create_on(server_url: &str) -> Self {
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        try_run(server_url, &format!("CREATE DATABASE {name}"))
            .unwrap_or_else(|error| panic!("cannot create a database on {server_url}: {error:?}"));
        Self { url: with_database(server_url, &name), server_url: server_url.to_owned(), name }
    }

    /// Copies this database into a new one. Panics if anybody is connected to this one.
    #[must_use]
    pub fn copy(&self) -> Self {
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        try_run(&self.server_url, &format!("CREATE DATABASE {name} TEMPLATE {}", self.name))
            .unwrap_or_else(|error| panic!("cannot copy the database {}: {error:?}", self.name));
        Self { url: with_database(&self.server_url, &name), server_url: self.server_url.clone(), name }
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Database {
    /// Makes nodes with messages on the wire look as if they had died 16 minutes ago. A negative `begun_at` is the
    /// negated time at which a node adopted a message of a dead node; that time goes back too.
    pub fn age_busy_nodes(&self) {
        let statements = "UPDATE nodes SET lease_until = 1
                WHERE node IN (SELECT claimed_node FROM queue WHERE begun_at IS NOT NULL);
            UPDATE queue SET begun_at = begun_at - 960000000 WHERE begun_at > 0;
            UPDATE queue SET begun_at = begun_at + 960000000 WHERE begun_at < 0;";
        self.execute(statements);
    }

    /// Removes the audit entries of an account after this one, as somebody with access to the database could.
    pub fn remove_audit_entries_after(&self, account: &str, seq: u32) {
        self.execute(&format!("DELETE FROM audit WHERE account_id = {account} AND seq > {seq}"));
    }

    /// Sets the head of the account's audit log back to this entry.
    pub fn set_audit_head_back(&self, account: &str, seq: u32) {
        self.execute(&format!(
            "UPDATE audit_heads SET seq = {seq},
                 hash = (SELECT hash FROM audit WHERE account_id = {account} AND seq = {seq})
             WHERE account_id = {account}"
        ));
    }

    pub fn remove_audit_head(&self, account: &str) {
        self.execute(&format!("DELETE FROM audit_heads WHERE account_id = {account}"));
    }

    /// Refuses to store delivery records, and so outcomes of attempts, like a full disk.
    pub fn refuse_outcomes(&self) {
        self.execute(
            "CREATE FUNCTION refuse_outcomes() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'no room for outcomes' USING ERRCODE = 'disk_full'; END $$;
             CREATE TRIGGER refuse_outcomes BEFORE INSERT ON deliveries
                FOR EACH ROW EXECUTE FUNCTION refuse_outcomes();",
        );
    }

    /// Refuses to store attempts to post to URLs that end with `path`, with an error that does not pass if the store
    /// tries again.
    pub fn refuse_webhook_attempts(&self, path: &str) {
        self.execute(&format!(
            "CREATE FUNCTION refuse_webhook_attempts() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'this attempt cannot be stored'; END $$;
             CREATE TRIGGER refuse_webhook_attempts BEFORE INSERT ON webhook_attempts
                FOR EACH ROW WHEN (NEW.url LIKE '%{path}') EXECUTE FUNCTION refuse_webhook_attempts();"
        ));
    }

    /// Refuses to store outcomes of attempts of one message, as if its rows were damaged.
    pub fn refuse_outcomes_of(&self, message: i64) {
        self.execute(&format!(
            "CREATE FUNCTION refuse_outcomes() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'damaged'; END $$;
             CREATE TRIGGER refuse_outcomes BEFORE INSERT ON deliveries
                FOR EACH ROW WHEN (NEW.message_id = {message}) EXECUTE FUNCTION refuse_outcomes();"
        ));
    }

    /// Ends `refuse_outcomes` and `refuse_outcomes_of`.
    pub fn accept_outcomes(&self) {
        self.execute("DROP FUNCTION refuse_outcomes CASCADE");
    }

    /// Refuses to put events after the first `count` + 1 into the outbox, like a full disk.
    pub fn refuse_events_after(&self, count: usize) {
        self.execute(&format!(
            "CREATE TABLE last_taken AS SELECT id FROM events ORDER BY id OFFSET {count} LIMIT 1;
             CREATE FUNCTION refuse_event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.event_id > (SELECT id FROM last_taken) THEN
                    RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full';
                END IF;
                RETURN NEW;
             END $$;
             CREATE TRIGGER refuse_event BEFORE INSERT ON webhook_queue
                FOR EACH ROW EXECUTE FUNCTION refuse_event()"
        ));
    }

    /// Ends `refuse_events_after`.
    pub fn accept_events(&self) {
        self.execute("DROP FUNCTION refuse_event CASCADE");
    }

    /// Sets the state of a job on messages, as if another node had worked on the job. No node continues it.
    pub fn set_job_state(&self, id: &str, state: &str) {
        self.execute(&format!(
            "UPDATE jobs SET state = '{state}', done = 1300, failed = 2, total = 4000, claimed_until = {}
             WHERE id = {id}",
            i64::MAX
        ));
    }

    /// Ends the claims on messages that are being sent, as if their node had lost its lease.
    pub fn lose_claims(&self) {
        self.execute("UPDATE queue SET claimed_epoch = claimed_epoch - 1 WHERE begun_at IS NOT NULL");
    }

    /// Locks the row of a message until the result is dropped.
    pub fn lock_message(&self, message: i64) -> RowLock {
        let (url, text) = (self.url.clone(), format!("SELECT FROM messages WHERE id = {message} FOR UPDATE"));
        let (locked_sender, locked_receiver) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let result = on_connection(&url, async move |client| {
                client.batch_execute("BEGIN").await?;
                client.batch_execute(&text).await?;
                let _ = locked_sender.send(());
                // Blocks the connection's own thread, until the sender is dropped.
                let _ = released.recv();
                Ok(())
            });
            result.unwrap_or_else(|error| panic!("the row of a message cannot be locked: {error:?}"));
        });
        locked_receiver.recv().expect("the row can be locked");
        RowLock { release: Some(release), thread: Some(thread) }
    }

    /// Runs statements, to change the database as somebody with access could.
    pub fn execute(&self, statements: &str) {
        run(&self.url, statements);
    }
}

/// A locked row.
#[derive(Debug)]
pub struct RowLock {
    release: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for RowLock {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // FORCE ends the sessions of a daemon that the test has just killed.
        let dropped =
            try_run(&self.server_url, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        if let Err(error) = dropped {
            eprintln!("the database {} stays behind: {error:?}", self.name);
        }
    }
}

/// Runs statements, or a single statement that cannot run in a transaction, such as `VACUUM`.
pub fn run(url: &str, statement: &str) {
    try_run(url, statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

fn try_run(url: &str, statement: &str) -> Result<(), tokio_postgres::Error> {
    on_connection(url, async |client| client.batch_execute(statement).await)
}

/// All rows of all tables as text; bytes in hex.
pub fn all_text(url: &str) -> String {
    let read = on_connection(url, async |client| {
        let tables = "SELECT oid::regclass::text FROM pg_class
                      WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition";
        let mut lines = Vec::new();
        for table in client.query(tables, &[]).await? {
            let table: String = table.get(0);
            for row in client.query(&format!("SELECT one::text FROM {table} AS one"), &[]).await? {
                lines.push(format!("{table}: {}", row.get::<_, String>(0)));
            }
        }
        Ok(lines.join("\n"))
    });
    read.unwrap_or_else(|error| panic!("cannot read {url}: {error:?}"))
}

/// Table and name of every column with one of these names.
pub(crate) fn columns_named(url: &str, names: &[&str]) -> Vec<(String, String)> {
    let text = "SELECT c.oid::regclass::text, a.attname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
                WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
                    AND NOT a.attisdropped AND a.attname = ANY($1)";
    let read = on_connection(url, async |client| {
        let rows = client.query(text, &[&names]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    });
    read.unwrap_or_else(|error| panic!("cannot read {url}: {error:?}"))
}

/// The rows of a query that selects two integers.
pub(crate) fn pairs(url: &str, query: &str) -> Vec<(i64, i64)> {
    let read = on_connection(url, async |client| {
        let rows = client.query(query, &[]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    });
    read.unwrap_or_else(|error| panic!("{query}: {error:?}"))
}

/// Runs `work` on a new connection, in its own thread: `Drop` may run inside a runtime, which forbids blocking on
/// another.
fn on_connection<T: Send>(
    url: &str,
    work: impl AsyncFnOnce(Client) -> Result<T, tokio_postgres::Error> + Send,
) -> Result<T, tokio_postgres::Error> {
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a small runtime needs only a few file descriptors");
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            work(client).await
        })
    };
    thread::scope(|scope| scope.spawn(work).join().expect("the statement does not panic"))
}

/// The URL with another database name, on the same server and with the same settings.
fn with_database(url: &str, name: &str) -> String {
    let (base, settings) = url.split_once('?').map_or((url, None), |(base, rest)| (base, Some(rest)));
    let authority_start = base.find("://").map_or(0, |at| at + 3);
    let authority_end = base[authority_start..].find('/').map_or(base.len(), |at| authority_start + at);
    let settings = settings.map(|rest| format!("?{rest}")).unwrap_or_default();
    format!("{}/{name}{settings}", &base[..authority_end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_of_a_url_is_replaced() {
        let cases = [
            ("postgres://me@127.0.0.1:5432/postgres", "postgres://me@127.0.0.1:5432/test_1"),
            ("postgres://me@127.0.0.1:5432", "postgres://me@127.0.0.1:5432/test_1"),
            ("postgresql://me:x@db/a?sslmode=disable", "postgresql://me:x@db/test_1?sslmode=disable"),
        ];
        for (url, expected) in cases {
            assert_eq!(with_database(url, "test_1"), expected);
        }
    }
}
