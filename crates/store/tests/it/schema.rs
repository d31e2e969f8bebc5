//! The schema of both engines as a golden file: a change shows as a diff. `UPDATE_GOLDEN=1` rewrites it.

use std::fmt::Write as _;
use std::path::Path;

use crate::fixture::{EngineFiles, Fixture, connect};

#[tokio::test]
async fn sqlite_schema_is_the_golden_one() {
    let fixture = Fixture::sqlite().await;
    let connection = rusqlite::Connection::open(fixture.engine_files.sqlite_path()).unwrap();
    let mut statement = connection
        .prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY tbl_name, type DESC, name")
        .unwrap();
    let parts = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let parts: Vec<String> = parts.map(|part| part.unwrap() + ";").collect();
    let text = parts.join("\n\n");
    compare("schema_sqlite.sql", &text);
}

/// If the condition of a partial index has a list of more than two values, SQLite fills a temporary table at every
/// write.
#[tokio::test]
async fn no_index_makes_writes_of_messages_fill_a_temporary_table() {
    let fixture = Fixture::sqlite().await;
    let connection = rusqlite::Connection::open(fixture.engine_files.sqlite_path()).unwrap();
    for statement in [
        "INSERT INTO messages (server_id, id, send_id, token, rcpt_to, status, bounce_for_id, last_seq)
         VALUES (1, 2, 3, 't', 'r', 'Pending', 0, 1)",
        "UPDATE messages SET status = 'Sent', hold_expiry = NULL, last_delivery_at = 4 WHERE server_id = 1 AND id = 2",
        "INSERT INTO queue (server_id, message_id, domain, due_at, attempts) VALUES (1, 2, 'example.com', 3, 0)",
        "UPDATE queue SET due_at = 4, attempts = 1 WHERE server_id = 1 AND message_id = 2",
        "DELETE FROM queue WHERE server_id = 1 AND message_id = 2",
    ] {
        let mut explain = connection.prepare(&format!("EXPLAIN {statement}")).unwrap();
        let steps = explain.query_map([], |row| row.get::<_, String>(1)).unwrap();
        let steps: Vec<String> = steps.map(|step| step.unwrap()).collect();
        assert!(steps.iter().any(|step| step.starts_with("Idx")), "{statement}: {steps:?}");
        assert!(!steps.iter().any(|step| step == "OpenEphemeral"), "{statement}: {steps:?}");
    }
}

// Needs several threads: copying a database blocks one, while another closes the connections to it.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_schema_is_the_golden_one() {
    let fixture = Fixture::postgres().await;
    // Creates partitions, which must not show.
    fixture.accept(fixture.send_to(&["ann@example.com"])).await;
    let EngineFiles::Postgres(database) = &fixture.engine_files else {
        unreachable!("it was made on PostgreSQL")
    };
    let client = connect(database.url()).await;
    let tables = client
        .query(
            "SELECT c.relname::text, coalesce(pg_get_partkeydef(c.oid), ''), c.oid FROM pg_class c
             WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
             ORDER BY c.relname",
            &[],
        )
        .await
        .unwrap();
    let mut text = String::new();
    for table in tables {
        let (name, partitions, oid): (String, String, u32) = (table.get(0), table.get(1), table.get(2));
        writeln!(text, "TABLE {name}").unwrap();
        let columns = "SELECT attname || ' ' || format_type(atttypid, atttypmod)
                || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END
                || CASE attidentity WHEN 'a' THEN ' GENERATED ALWAYS AS IDENTITY' ELSE '' END
                || coalesce(' DEFAULT ' || pg_get_expr(adbin, adrelid), '')
                || CASE WHEN attstorage = 'e' THEN ' STORAGE EXTERNAL' ELSE '' END
             FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
             WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
        // The text of NOT NULL constraints differs between versions; the columns show them anyway.
        let constraints = "SELECT pg_get_constraintdef(oid) FROM pg_constraint
             WHERE conrelid = $1 AND contype <> 'n' ORDER BY contype DESC, conname";
        let indexes = "SELECT pg_get_indexdef(indexrelid) FROM pg_index
             WHERE indrelid = $1 AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
             ORDER BY indexrelid::regclass::text";
        let triggers = "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal ORDER BY tgname";
        for query in [columns, constraints, indexes, triggers] {
            for row in client.query(query, &[&oid]).await.expect("the store works") {
                writeln!(text, "    {}", row.get::<_, String>(0)).unwrap();
            }
        }
        if !partitions.is_empty() {
            writeln!(text, "    PARTITION BY {partitions}").unwrap();
        }
        text.push('\n');
    }
    let functions = "SELECT proname || '() AS ' || prosrc FROM pg_proc
         WHERE pronamespace = 'public'::regnamespace ORDER BY proname";
    for function in client.query(functions, &[]).await.unwrap() {
        writeln!(text, "FUNCTION {}", function.get::<_, String>(0)).unwrap();
    }
    compare("schema_postgres.sql", &text);
}

fn compare(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let found = format!("{}\n", found.trim_end());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == found, "{name} is not the schema; UPDATE_GOLDEN=1 rewrites it. Found:\n{found}");
}
