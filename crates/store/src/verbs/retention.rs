//! Removing what is old, few rows at a time: each step is short, so that nobody waits for it.

use postroad_model::{SendId, ServerId};

use crate::counting::Grain;
use crate::error::StoreError;
use crate::records::OldRows;
use crate::sql::Sql;

/// The lowest id of a message that is still queued, scheduled or held.
pub(crate) async fn find_oldest_live(sql: &Sql<'_>) -> Result<Option<i64>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT MIN(live.id) FROM (
                 SELECT (SELECT MIN(q.message_id) FROM queue q WHERE q.server_id = s.id) AS id FROM servers s
                 UNION ALL SELECT MIN(m.id) FROM messages m WHERE m.hold_expiry IS NOT NULL) AS live",
            &[],
        )
        .await?;
    row.map_or(Ok(None), |row| row.int_opt(0))
}

/// The lowest id of an event that a webhook is still to be told of.
pub(crate) async fn find_oldest_untold(sql: &Sql<'_>) -> Result<Option<i64>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT MIN(untold.id) FROM (
                 SELECT (SELECT MIN(q.event_id) FROM webhook_queue q
                         WHERE q.server_id = w.server_id AND q.webhook_id = w.id) AS id
                 FROM webhooks w WHERE w.enabled = 1) AS untold",
            &[],
        )
        .await?;
    row.map_or(Ok(None), |row| row.int_opt(0))
}

/// Whether there is an event before this id that is not counted yet.
pub(crate) async fn has_uncounted_before(sql: &Sql<'_>, before: i64) -> Result<bool, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT 1 FROM servers s LEFT JOIN counter_marks c ON c.server_id = s.id
         WHERE EXISTS (SELECT 1 FROM events e WHERE e.server_id = s.id AND e.id > COALESCE(c.event_id, 0) AND e.id < $1)
         LIMIT 1"
    } else {
        "SELECT 1::bigint FROM servers s LEFT JOIN counter_marks c ON c.server_id = s.id
         WHERE EXISTS (SELECT 1 FROM events e WHERE e.server_id = s.id
                       AND (e.xact, e.id) > (COALESCE(c.xact, 0), COALESCE(c.event_id, 0)) AND e.id < $1)
         LIMIT 1"
    };
    Ok(sql.query_opt(text, &[before.into()]).await?.is_some())
}

/// A table as removal sees it: who has old rows, and how some of them go. `$1` of `remove` is the server, `$2` the first
/// id (or second) that stays, `$3` how many rows at most.
struct Removal {
    find: &'static str,
    remove: &'static str,
}

macro_rules! by_key {
    ($table:literal, $key:literal, $columns:literal) => {
        Removal {
            find: concat!(
                "SELECT s.id FROM servers s WHERE EXISTS (SELECT 1 FROM ",
                $table,
                " old WHERE old.server_id = s.id AND old.",
                $key,
                " < $1) LIMIT 1"
            ),
            remove: concat!(
                "DELETE FROM ",
                $table,
                " WHERE server_id = $1 AND (",
                $columns,
                ") IN (SELECT ",
                $columns,
                " FROM ",
                $table,
                " WHERE server_id = $1 AND ",
                $key,
                " < $2 LIMIT $3)"
            ),
        }
    };
}

/// Only events that are counted. On SQLite their ids alone say so.
fn events(is_sqlite: bool, by_message: bool) -> Removal {
    match (is_sqlite, by_message) {
        (true, true) => Removal {
            find: "SELECT c.server_id FROM counter_marks c WHERE EXISTS (SELECT 1 FROM events e
                       WHERE e.server_id = c.server_id AND e.message_id > 0 AND e.message_id < $1 AND e.id <= c.event_id)
                   LIMIT 1",
            remove: "DELETE FROM events WHERE server_id = $1 AND id IN (SELECT e.id FROM events e
                         WHERE e.server_id = $1 AND e.message_id > 0 AND e.message_id < $2
                         AND e.id <= (SELECT c.event_id FROM counter_marks c WHERE c.server_id = $1) LIMIT $3)",
        },
        (true, false) => Removal {
            find: "SELECT c.server_id FROM counter_marks c WHERE EXISTS (SELECT 1 FROM events e
                       WHERE e.server_id = c.server_id AND e.id < $1 AND e.id <= c.event_id) LIMIT 1",
            remove: "DELETE FROM events WHERE server_id = $1 AND id IN (SELECT e.id FROM events e
                         WHERE e.server_id = $1 AND e.id < $2
                         AND e.id <= (SELECT c.event_id FROM counter_marks c WHERE c.server_id = $1) LIMIT $3)",
        },
        // By their own ids they go with their week.
        (false, _) => Removal {
            find: "SELECT c.server_id FROM counter_marks c WHERE EXISTS (SELECT 1 FROM events e
                       WHERE e.server_id = c.server_id AND e.message_id > 0 AND e.message_id < $1
                       AND (e.xact, e.id) <= (c.xact, c.event_id)) LIMIT 1",
            remove: "DELETE FROM events WHERE server_id = $1 AND id IN (SELECT e.id FROM events e
                         JOIN counter_marks c ON c.server_id = e.server_id
                         WHERE e.server_id = $1 AND e.message_id > 0 AND e.message_id < $2
                         AND (e.xact, e.id) <= (c.xact, c.event_id) LIMIT $3)",
        },
    }
}

/// `None` for bodies, which have their own way: some are files.
fn removal_of(which: OldRows, is_sqlite: bool) -> Option<Removal> {
    Some(match which {
        OldRows::Transcripts => by_key!("delivery_transcripts", "message_id", "message_id, delivery_id"),
        OldRows::Deliveries => by_key!("deliveries", "message_id", "message_id, id"),
        OldRows::Events => events(is_sqlite, false),
        OldRows::EventsOfMessages => events(is_sqlite, true),
        OldRows::Messages => by_key!("messages", "id", "id"),
        OldRows::Sends => by_key!("sends", "id", "id"),
        OldRows::WebhookAttempts => by_key!("webhook_attempts", "id", "id"),
        OldRows::Bodies => return None,
    })
}

/// A server that has some of them.
pub(crate) async fn find_server(
    sql: &Sql<'_>,
    which: OldRows,
    before: i64,
) -> Result<Option<ServerId>, StoreError> {
    let Some(removal) = removal_of(which, sql.is_sqlite()) else { return Ok(None) };
    let row = sql.query_opt(removal.find, &[before.into()]).await?;
    row.map(|row| row.int(0).map(ServerId)).transpose()
}

pub(crate) async fn remove_rows(
    sql: &Sql<'_>,
    which: OldRows,
    server_id: ServerId,
    before: i64,
    limit: usize,
) -> Result<u64, StoreError> {
    let Some(removal) = removal_of(which, sql.is_sqlite()) else { return Ok(0) };
    sql.execute(removal.remove, &[server_id.0.into(), before.into(), (limit as i64).into()]).await
}

/// SQLite only. Returns how many rows went, and whose text was in a file.
pub(crate) async fn remove_bodies(
    sql: &Sql<'_>,
    before: i64,
    limit: usize,
) -> Result<(u64, Vec<SendId>), StoreError> {
    let rows = sql
        .query(
            "DELETE FROM bodies WHERE send_id IN (SELECT send_id FROM bodies WHERE send_id < $1 ORDER BY send_id LIMIT $2)
             RETURNING send_id, data IS NULL",
            &[before.into(), (limit as i64).into()],
        )
        .await?;
    let mut files = Vec::new();
    for row in &rows {
        if row.flag(1)? {
            files.push(SendId(row.int(0)?));
        }
    }
    Ok((rows.len() as u64, files))
}

/// A server with counters of one grain from before a moment (seconds since 1970).
pub(crate) async fn find_server_with_counters(
    sql: &Sql<'_>,
    grain: Grain,
    before: i64,
) -> Result<Option<ServerId>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT s.id FROM servers s
             WHERE EXISTS (SELECT 1 FROM counters c WHERE c.server_id = s.id AND c.grain = $1 AND c.dimensions = 0
                           AND c.at < $2)
                OR EXISTS (SELECT 1 FROM counter_dimensions d WHERE d.server_id = s.id
                           AND EXISTS (SELECT 1 FROM counters c WHERE c.server_id = d.server_id AND c.grain = $1
                                       AND c.dimensions = d.id AND c.at < $2))
             LIMIT 1",
            &[grain.code().into(), before.into()],
        )
        .await?;
    row.map(|row| row.int(0).map(ServerId)).transpose()
}

pub(crate) async fn remove_counters(
    sql: &Sql<'_>,
    server_id: ServerId,
    grain: Grain,
    before: i64,
    limit: usize,
) -> Result<u64, StoreError> {
    let params = [server_id.0.into(), grain.code().into(), before.into(), (limit as i64).into()];
    let totals = sql
        .execute(
            "DELETE FROM counters WHERE server_id = $1 AND grain = $2 AND dimensions = 0 AND at IN (
                 SELECT at FROM counters WHERE server_id = $1 AND grain = $2 AND dimensions = 0 AND at < $3 LIMIT $4)",
            &params,
        )
        .await?;
    // Old ones stand at the front of each set of dimensions: a few sets at a time.
    let split = sql
        .execute(
            "DELETE FROM counters WHERE server_id = $1 AND grain = $2 AND (dimensions, at) IN (
                 SELECT c.dimensions, c.at FROM counters c WHERE c.server_id = $1 AND c.grain = $2 AND c.at < $3
                 AND c.dimensions IN (
                     SELECT d.id FROM counter_dimensions d WHERE d.server_id = $1
                     AND EXISTS (SELECT 1 FROM counters first WHERE first.server_id = $1 AND first.grain = $2
                                 AND first.dimensions = d.id AND first.at < $3) LIMIT 100) LIMIT $4)",
            &params,
        )
        .await?;
    Ok(split + totals)
}

/// A server with days of recipient domains, or sets of dimensions, from before a day.
pub(crate) async fn find_server_with_days(
    sql: &Sql<'_>,
    before: i64,
) -> Result<Option<ServerId>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT s.id FROM servers s
             WHERE EXISTS (SELECT 1 FROM recipient_domain_days r WHERE r.server_id = s.id AND r.day < $1)
                OR EXISTS (SELECT 1 FROM counter_dimensions d WHERE d.server_id = s.id AND d.last_day < $1)
             LIMIT 1",
            &[before.into()],
        )
        .await?;
    row.map(|row| row.int(0).map(ServerId)).transpose()
}

pub(crate) async fn remove_days(
    sql: &Sql<'_>,
    server_id: ServerId,
    before: i64,
    limit: usize,
) -> Result<u64, StoreError> {
    let params = [server_id.0.into(), before.into(), (limit as i64).into()];
    let days = sql
        .execute(
            "DELETE FROM recipient_domain_days WHERE server_id = $1 AND (day, domain) IN (
                 SELECT day, domain FROM recipient_domain_days WHERE server_id = $1 AND day < $2 LIMIT $3)",
            &params,
        )
        .await?;
    let sets = sql
        .execute(
            "DELETE FROM counter_dimensions WHERE server_id = $1 AND id IN (
                 SELECT id FROM counter_dimensions WHERE server_id = $1 AND last_day < $2 LIMIT $3)",
            &params,
        )
        .await?;
    Ok(days + sets)
}
