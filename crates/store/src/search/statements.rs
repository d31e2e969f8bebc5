//! SQL of searches. Each statement uses an index, on both engines and whatever the planner assumes about table sizes:
//! `OFFSET 0` keeps PostgreSQL from turning single look-ups into a join of whole tables. `blocks.rs` names the states
//! of blocks.

macro_rules! columns {
    () => {
        "m.id, m.token, m.rcpt_to, m.status, s.message_id, s.mail_from, s.from_domain, s.subject, s.tag, s.metadata,
         s.options, s.size, s.test, s.created_at, m.send_at"
    };
}

// Here and below, `bounce_for_id = 0` excludes returned mail.
macro_rules! scan {
    ($order:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM messages m JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
             WHERE m.server_id = $1 AND m.id >= $2 AND m.id < $3 AND m.bounce_for_id = 0 ORDER BY ",
            $order,
            " LIMIT $4"
        )
    };
}

pub(super) const SCAN_DOWN: &str = scan!("m.id DESC");
pub(super) const SCAN_UP: &str = scan!("m.id");

/// The message after `$4` other messages.
pub(super) const NTH_MESSAGE: &str = "SELECT id FROM messages
     WHERE server_id = $1 AND id >= $2 AND id < $3 AND bounce_for_id = 0 ORDER BY id LIMIT 1 OFFSET $4";

pub(super) const MESSAGES_SQLITE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM json_each($2) AS wanted CROSS JOIN messages m ON m.server_id = $1 AND m.id = wanted.value
     CROSS JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id WHERE m.bounce_for_id = 0"
);
pub(super) const MESSAGES_POSTGRES: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM json_array_elements_text(CAST($2::text AS json)) AS wanted (id)
     CROSS JOIN LATERAL (SELECT * FROM messages m WHERE m.server_id = $1 AND m.id = wanted.id::bigint OFFSET 0) m
     CROSS JOIN LATERAL (SELECT * FROM sends s WHERE s.server_id = $1 AND s.id = m.send_id OFFSET 0) s
     WHERE m.bounce_for_id = 0"
);

/// The condition on the status is that of the index `messages_by_rare_status`, so that the index is used.
pub(super) const BY_RARE_STATUS: &str = "SELECT id FROM messages
     WHERE server_id = $1 AND status = $2 AND id >= $3 AND id < $4
     AND (status = 'Held' OR status = 'HardFail' OR status = 'Bounced' OR status = 'HoldCancelled' OR status = 'Cancelled')
     ORDER BY id DESC LIMIT $5";
pub(super) const BY_QUEUE: &str = "SELECT message_id FROM queue
     WHERE server_id = $1 AND message_id >= $2 AND message_id < $3 ORDER BY message_id DESC LIMIT $4";
/// Reads only the scheduled messages of a queue that may have many other messages. Without `INDEXED BY`, SQLite would
/// use the primary key and read all messages of the queue.
pub(super) const BY_SCHEDULE_SQLITE: &str =
    "SELECT message_id FROM queue INDEXED BY queue_scheduled_by_server
     WHERE server_id = $1 AND message_id >= $2 AND message_id < $3 AND scheduled > 0
     ORDER BY message_id DESC LIMIT $4";
/// PostgreSQL chooses an index of scheduled messages by itself, because that index is smaller than the primary key.
pub(super) const BY_SCHEDULE_POSTGRES: &str = "SELECT message_id FROM queue
     WHERE server_id = $1 AND message_id >= $2 AND message_id < $3 AND scheduled > 0
     ORDER BY message_id DESC LIMIT $4";

pub(super) const BLOCKS: &str = "SELECT first_id, last_id, state, claimed_until FROM search_blocks
     WHERE server_id = $1 AND first_id < $2 AND state <> 4 ORDER BY first_id DESC LIMIT $3";

pub(super) const CHECKED_BLOCKS: &str = "SELECT first_id, last_id FROM search_blocks
     WHERE server_id = $1 AND state = 2 ORDER BY first_id LIMIT $2";
pub(super) const MERGED_WITH_PARTS: &str = "SELECT server_id, first_id, last_id FROM search_blocks
     WHERE state = 3 AND claimed_until > 0 AND claimed_until <= $1 ORDER BY claimed_until LIMIT 1";
/// Reads a claim. On SQLite there is one writer at a time, so nothing needs a lock.
pub(super) const CLAIM_SQLITE: &str = "SELECT first_id FROM search_blocks
     WHERE server_id = $1 AND first_id = $2 AND state = 2 AND claimed_until = $3";
pub(super) const CLAIM_POSTGRES: &str = "SELECT first_id FROM search_blocks
     WHERE server_id = $1 AND first_id = $2 AND state = 2 AND claimed_until = $3 FOR UPDATE";
/// The token after `$4` other tokens.
pub(super) const NTH_TOKEN: &str = "SELECT token FROM search_postings
     WHERE server_id = $1 AND block = $2 AND token >= $3 ORDER BY token LIMIT 1 OFFSET $4";
pub(super) const TOKENS_BETWEEN: &str = "SELECT token, positions FROM search_postings
     WHERE server_id = $1 AND block = $2 AND token >= $3 AND token <= $4";

pub(super) const POSTINGS_SQLITE: &str = "SELECT p.block, p.token, p.positions
     FROM json_each($2) AS b CROSS JOIN json_each($3) AS t
     CROSS JOIN search_postings p ON p.server_id = $1 AND p.block = b.value AND p.token = t.value";
pub(super) const POSTINGS_POSTGRES: &str = "SELECT p.block, p.token, p.positions
     FROM json_array_elements_text(CAST($2::text AS json)) AS b (block)
     CROSS JOIN json_array_elements_text(CAST($3::text AS json)) AS t (token)
     CROSS JOIN LATERAL (SELECT * FROM search_postings p WHERE p.server_id = $1 AND p.block = b.block::bigint
                         AND p.token = t.token::bigint OFFSET 0) p";

pub(super) const IDS_SQLITE: &str = "SELECT b.first_id, b.ids FROM json_each($2) AS wanted
     CROSS JOIN search_blocks b ON b.server_id = $1 AND b.first_id = wanted.value";
pub(super) const IDS_POSTGRES: &str = "SELECT b.first_id, b.ids
     FROM json_array_elements_text(CAST($2::text AS json)) AS wanted (id)
     CROSS JOIN LATERAL (SELECT * FROM search_blocks b WHERE b.server_id = $1
                         AND b.first_id = wanted.id::bigint OFFSET 0) b";

pub(super) const HOLDS_SQLITE: &str = "SELECT e.message_id, e.data FROM json_each($2) AS wanted
     CROSS JOIN events e INDEXED BY events_by_message
         ON e.server_id = $1 AND e.message_id = wanted.value AND e.kind = 'message.held' ORDER BY e.seq";
pub(super) const HOLDS_POSTGRES: &str = "SELECT e.message_id, e.data
     FROM json_array_elements_text(CAST($2::text AS json)) AS wanted (id)
     CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.server_id = $1 AND e.message_id = wanted.id::bigint
                         AND e.kind = 'message.held' OFFSET 0) e ORDER BY e.seq";

/// Last id of the newest written block of server `s`; -1 without blocks.
macro_rules! index_end {
    () => {
        "coalesce((SELECT b.last_id FROM search_blocks b WHERE b.server_id = s.id AND b.state <> 0 AND b.state <> 4
                   ORDER BY b.first_id DESC LIMIT 1), -1)"
    };
}

pub(super) const UNINDEXED_TOKEN_SQLITE: &str = concat!(
    "SELECT m.server_id, m.id FROM json_each($3) AS wanted
     CROSS JOIN servers s ON s.id = wanted.value CROSS JOIN messages m ON m.server_id = s.id AND m.id > ",
    index_end!(),
    " WHERE m.token = $1 AND m.bounce_for_id = 0 LIMIT $2"
);
pub(super) const UNINDEXED_TOKEN_POSTGRES: &str = concat!(
    "SELECT m.server_id, m.id FROM json_array_elements_text(CAST($3::text AS json)) AS wanted (id)
     CROSS JOIN LATERAL (SELECT * FROM servers s WHERE s.id = wanted.id::bigint OFFSET 0) s
     CROSS JOIN LATERAL (SELECT * FROM messages m WHERE m.server_id = s.id AND m.id > ",
    index_end!(),
    " OFFSET 0) m WHERE m.token = $1 AND m.bounce_for_id = 0 LIMIT $2"
);
pub(super) const UNINDEXED_MESSAGE_ID_SQLITE: &str = concat!(
    "SELECT m.server_id, m.id FROM json_each($3) AS wanted
     CROSS JOIN servers s ON s.id = wanted.value CROSS JOIN messages m ON m.server_id = s.id AND m.id > ",
    index_end!(),
    " CROSS JOIN sends x ON x.server_id = m.server_id AND x.id = m.send_id
     WHERE x.message_id = $1 AND m.bounce_for_id = 0 LIMIT $2"
);
pub(super) const UNINDEXED_MESSAGE_ID_POSTGRES: &str = concat!(
    "SELECT m.server_id, m.id FROM json_array_elements_text(CAST($3::text AS json)) AS wanted (id)
     CROSS JOIN LATERAL (SELECT * FROM servers s WHERE s.id = wanted.id::bigint OFFSET 0) s
     CROSS JOIN LATERAL (SELECT * FROM messages m WHERE m.server_id = s.id AND m.id > ",
    index_end!(),
    " OFFSET 0) m
     CROSS JOIN LATERAL (SELECT * FROM sends x WHERE x.server_id = m.server_id AND x.id = m.send_id OFFSET 0) x
     WHERE x.message_id = $1 AND m.bounce_for_id = 0 LIMIT $2"
);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use postroad_model::SystemClock;
    use tokio_postgres::NoTls;

    use super::*;
    use crate::{Database, Role, Settings, Store};

    async fn create_schema(database: Database) {
        let settings = Settings::small(database);
        let role = Role::Node { identity: "plans".into() };
        let store = Store::open(settings, role, Arc::new(SystemClock)).await.unwrap();
        // Creates the partitions of this week: PostgreSQL makes no plan for tables without partitions.
        let id = store.write_with_ids(|_, ids| Box::pin(async move { Ok(ids.next()) })).await.unwrap();
        assert!(id > 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn plans_on_sqlite_use_indexes() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("postroad.db");
        create_schema(Database::Sqlite(path.clone())).await;
        let connection = rusqlite::Connection::open(path).unwrap();
        for (text, index) in [
            (SCAN_DOWN, "SEARCH m USING PRIMARY KEY (server_id=? AND id>? AND id<?)"),
            (NTH_MESSAGE, "SEARCH messages USING PRIMARY KEY (server_id=? AND id>? AND id<?)"),
            (MESSAGES_SQLITE, "SEARCH m USING PRIMARY KEY (server_id=? AND id=?)"),
            (BY_RARE_STATUS, "messages_by_rare_status (server_id=? AND status=? AND id>? AND id<?)"),
            (BY_QUEUE, "SEARCH queue USING PRIMARY KEY (server_id=? AND message_id>? AND message_id<?)"),
            (BY_SCHEDULE_SQLITE, "queue_scheduled_by_server (server_id=? AND message_id>? AND message_id<?)"),
            (
                BLOCKS,
                "SEARCH search_blocks USING INDEX sqlite_autoindex_search_blocks_1 (server_id=? AND first_id<?)",
            ),
            (CHECKED_BLOCKS, "SEARCH search_blocks USING INDEX search_blocks_checked (server_id=?)"),
            (MERGED_WITH_PARTS, "search_blocks_with_parts (claimed_until>? AND claimed_until<?)"),
            (NTH_TOKEN, "SEARCH search_postings USING PRIMARY KEY (server_id=? AND block=? AND token>?)"),
            (TOKENS_BETWEEN, "PRIMARY KEY (server_id=? AND block=? AND token>? AND token<?)"),
            (POSTINGS_SQLITE, "SEARCH p USING PRIMARY KEY (server_id=? AND block=? AND token=?)"),
            (IDS_SQLITE, "sqlite_autoindex_search_blocks_1 (server_id=? AND first_id=?)"),
            (HOLDS_SQLITE, "events_by_message (server_id=? AND message_id=?)"),
            (UNINDEXED_TOKEN_SQLITE, "SEARCH m USING PRIMARY KEY (server_id=? AND id>?)"),
            (UNINDEXED_MESSAGE_ID_SQLITE, "SEARCH m USING PRIMARY KEY (server_id=? AND id>?)"),
            (UNINDEXED_MESSAGE_ID_SQLITE, "SEARCH x USING PRIMARY KEY (server_id=? AND id=?)"),
        ] {
            let mut statement =
                connection.prepare(&format!("EXPLAIN QUERY PLAN {}", text.replace('$', "?"))).unwrap();
            let count = statement.parameter_count();
            let params = rusqlite::params_from_iter(std::iter::repeat_n(rusqlite::types::Null, count));
            let steps = statement.query_map(params, |row| row.get::<_, String>(3)).unwrap();
            let plan: Vec<String> = steps.map(|step| step.unwrap()).collect();
            assert!(plan.iter().any(|step| step.contains(index)), "{index} is not in {plan:#?} of {text}");
            // `json_each` is a virtual table.
            let is_scan = |step: &&String| step.starts_with("SCAN") && !step.contains("VIRTUAL TABLE");
            assert_eq!(plan.iter().find(is_scan), None, "{text}");
            // Only the holds of several messages have to be sorted.
            let is_sorted = plan.iter().any(|step| step.contains("TEMP B-TREE"));
            assert!(!is_sorted || text == HOLDS_SQLITE, "{plan:#?}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn messages_of_some_servers_are_found_by_indexes_on_postgres() {
        let database = postroad_testkit::Database::create();
        create_schema(Database::Postgres(database.url().to_owned())).await;
        let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let settings = "SET enable_seqscan = off; SET enable_bitmapscan = off";
        client.batch_execute(settings).await.unwrap();
        for text in [UNINDEXED_TOKEN_POSTGRES, UNINDEXED_MESSAGE_ID_POSTGRES] {
            let text = text.replace("$1", "'x'").replace("$2", "20").replace("$3", "'[1]'");
            let rows = client.query(&format!("EXPLAIN {text}"), &[]).await.unwrap();
            let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            let plan = plan.join("\n");
            let mut conditions = plan.lines().filter(|line| line.contains("Index Cond:"));
            assert!(
                conditions.any(|line| line.contains("server_id = s.id") && line.contains("id >")),
                "{plan}\nof {text}"
            );
            assert!(!plan.contains("Seq Scan on messages") && !plan.contains("Seq Scan on sends"), "{plan}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn scheduled_messages_are_found_on_postgres_without_reading_the_queue() {
        let database = postroad_testkit::Database::create();
        create_schema(Database::Postgres(database.url().to_owned())).await;
        let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let fill = "INSERT INTO queue (server_id, message_id, domain, due_at, attempts, scheduled)
            SELECT 1, n, 'x.example', n, 0, CASE WHEN n % 1000 = 0 THEN 1 ELSE 0 END FROM generate_series(1, 20000) n";
        client.batch_execute(fill).await.unwrap();
        let values = [("$4", "500"), ("$3", "9000000000000000000"), ("$2", "5"), ("$1", "1")];
        let text = values
            .iter()
            .fold(BY_SCHEDULE_POSTGRES.to_owned(), |text, (name, value)| text.replace(name, value));
        for statistics in ["", "ANALYZE queue"] {
            client.batch_execute(statistics).await.unwrap();
            let rows = client.query(&format!("EXPLAIN (ANALYZE, TIMING OFF) {text}"), &[]).await.unwrap();
            let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            let plan = plan.join("\n");
            assert!(!plan.contains("Rows Removed by Filter") && plan.contains("queue_scheduled"), "{plan}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn plans_on_postgres_use_indexes() {
        let database = postroad_testkit::Database::create();
        create_schema(Database::Postgres(database.url().to_owned())).await;
        let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let settings =
            "SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_custom_plan";
        client.batch_execute(settings).await.unwrap();
        let far = "9000000000000000000";
        for (text, values, condition) in [
            (SCAN_DOWN, ["1", "5", far, "500", ""], "id >= 5"),
            (NTH_MESSAGE, ["1", "5", far, "500", ""], "id >= 5"),
            (MESSAGES_POSTGRES, ["1", "'[1]'", "", "", ""], "id = (wanted.id)::bigint"),
            (BY_RARE_STATUS, ["1", "'Held'", "5", far, "500"], "status = 'Held'::text"),
            (BY_QUEUE, ["1", "5", far, "500", ""], "message_id >= 5"),
            (BLOCKS, ["1", far, "500", "", ""], "first_id < "),
            (CHECKED_BLOCKS, ["1", "16", "", "", ""], ""),
            (NTH_TOKEN, ["1", "2", "5", "500", ""], "token >= 5"),
            (TOKENS_BETWEEN, ["1", "2", "5", "9", ""], "token <= 9"),
            (POSTINGS_POSTGRES, ["1", "'[1]'", "'[2]'", "", ""], "block = (b.block)::bigint"),
            (IDS_POSTGRES, ["1", "'[1]'", "", "", ""], "first_id = (wanted.id)::bigint"),
            (HOLDS_POSTGRES, ["1", "'[1]'", "", "", ""], "message_id = (wanted.id)::bigint"),
        ] {
            let mut text = text.to_owned();
            for (number, value) in values.iter().enumerate().rev() {
                text = text.replace(&format!("${}", number + 1), value);
            }
            let rows = client.query(&format!("EXPLAIN {text}"), &[]).await.unwrap();
            let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            let plan = plan.join("\n");
            let is_indexed = |line: &str| line.contains("server_id = 1") && line.contains(condition);
            let mut conditions = plan.lines().filter(|line| line.contains("Index Cond:"));
            assert!(conditions.any(is_indexed), "{condition} is not in\n{plan}\nof {text}");
            assert!(!plan.contains("Seq Scan"), "{plan}");
        }
    }
}
