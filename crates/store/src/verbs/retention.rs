//! Removing what is old, few rows at a time: each step is short, so that nobody waits for it.

use postroad_model::{SendId, ServerId};

use crate::counting::{Grain, Shape, block_start};
use crate::error::StoreError;
use crate::records::{Cut, OldRows};
use crate::sql::{Sql, to_json};

/// A table as removal sees it. `$1` is the server, `$2` the first id that stays, `$3` how many rows at most.
struct RowRemoval {
    has: &'static str,
    remove: &'static str,
}

macro_rules! by_key {
    ($table:literal, $key:literal, $columns:literal) => {
        RowRemoval {
            has: concat!(
                "SELECT server_id FROM ",
                $table,
                " WHERE server_id = $1 AND ",
                $key,
                " < $2 LIMIT 1"
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

/// Events that go with their messages: only those that are counted and that no webhook waits for.
macro_rules! events_of_messages {
    ($is_counted:literal) => {
        RowRemoval {
            has: concat!("SELECT e.server_id ", events_of_messages!(@from $is_counted), " LIMIT 1"),
            remove: concat!(
                "DELETE FROM events WHERE server_id = $1 AND id IN (SELECT e.id ",
                events_of_messages!(@from $is_counted),
                " LIMIT $3)"
            ),
        }
    };
    (@from $is_counted:literal) => {
        concat!(
            "FROM events e JOIN counter_marks c ON c.server_id = e.server_id
             WHERE e.server_id = $1 AND e.message_id > 0 AND e.message_id < $2 AND ",
            $is_counted,
            " AND NOT EXISTS (SELECT 1 FROM webhooks w
                  JOIN webhook_queue q ON q.server_id = w.server_id AND q.webhook_id = w.id
                  WHERE w.server_id = $1 AND w.enabled = 1 AND q.event_id = e.id)"
        )
    };
}

fn removal_of(which: OldRows, is_sqlite: bool) -> RowRemoval {
    match which {
        // On SQLite they have their own way: they are of no server, and some are files.
        OldRows::Bodies => by_key!("bodies", "send_id", "send_id, piece"),
        OldRows::Transcripts => by_key!("delivery_transcripts", "message_id", "message_id, delivery_id"),
        OldRows::Deliveries => by_key!("deliveries", "message_id", "message_id, id"),
        OldRows::Events => by_key!("events", "id", "id"),
        OldRows::EventsOfMessages if is_sqlite => events_of_messages!("e.id <= c.event_id"),
        OldRows::EventsOfMessages => events_of_messages!("(e.xact, e.id) <= (c.xact, c.event_id)"),
        OldRows::Messages => by_key!("messages", "id", "id"),
        OldRows::Sends => by_key!("sends", "id", "id"),
        OldRows::WebhookAttempts => by_key!("webhook_attempts", "id", "id"),
    }
}

pub(crate) async fn has_rows(sql: &Sql<'_>, which: OldRows, cut: Cut) -> Result<bool, StoreError> {
    let text = removal_of(which, sql.is_sqlite()).has;
    Ok(sql.query_opt(text, &[cut.server_id.0.into(), cut.before_id.into()]).await?.is_some())
}

pub(crate) async fn remove_rows(
    sql: &Sql<'_>,
    which: OldRows,
    cut: Cut,
    limit: usize,
) -> Result<u64, StoreError> {
    let text = removal_of(which, sql.is_sqlite()).remove;
    sql.execute(text, &[cut.server_id.0.into(), cut.before_id.into(), (limit as i64).into()]).await
}

/// Some bodies, in the order of their ids.
pub(crate) struct FoundBodies {
    pub(crate) old: Vec<SendId>,
    /// The last that was looked at; `None` when there was none.
    pub(crate) last: Option<i64>,
}

/// SQLite only. `kept` are the servers that need some of what is old: a body says nothing of its server.
pub(crate) async fn find_bodies(
    sql: &Sql<'_>,
    after: i64,
    before: i64,
    kept: &[Cut],
    limit: usize,
) -> Result<FoundBodies, StoreError> {
    let kept: Vec<(i64, i64)> = kept.iter().map(|cut| (cut.server_id.0, cut.before_id)).collect();
    let rows = sql
        .query(
            "SELECT b.send_id, EXISTS (
                 SELECT 1 FROM json_each($3) AS kept
                 CROSS JOIN sends s ON s.server_id = kept.value ->> 0 AND s.id = b.send_id
                 WHERE b.send_id >= kept.value ->> 1)
             FROM bodies b WHERE b.send_id > $1 AND b.send_id < $2 ORDER BY b.send_id LIMIT $4",
            &[after.into(), before.into(), to_json(&kept).into(), (limit as i64).into()],
        )
        .await?;
    let mut found = FoundBodies { old: Vec::new(), last: None };
    for row in &rows {
        found.last = Some(row.int(0)?);
        if !row.flag(1)? {
            found.old.push(SendId(row.int(0)?));
        }
    }
    Ok(found)
}

/// SQLite only: those of one server. Looks at no more sends, and finds no more bodies, than the limits say.
pub(crate) async fn find_bodies_of(
    sql: &Sql<'_>,
    cut: Cut,
    after: i64,
    (sends_max, bodies_max): (usize, usize),
) -> Result<FoundBodies, StoreError> {
    let rows = sql
        .query(
            "SELECT s.id, EXISTS (SELECT 1 FROM bodies b WHERE b.send_id = s.id) FROM sends s
             WHERE s.server_id = $1 AND s.id > $2 AND s.id < $3 ORDER BY s.id LIMIT $4",
            &[cut.server_id.0.into(), after.into(), cut.before_id.into(), (sends_max as i64).into()],
        )
        .await?;
    let mut found = FoundBodies { old: Vec::new(), last: None };
    for row in &rows {
        if found.old.len() == bodies_max {
            break;
        }
        found.last = Some(row.int(0)?);
        if row.flag(1)? {
            found.old.push(SendId(row.int(0)?));
        }
    }
    Ok(found)
}

/// SQLite only. Returns how many rows went, and whose text was in a file.
pub(crate) async fn remove_bodies(sql: &Sql<'_>, old: &[SendId]) -> Result<(u64, Vec<SendId>), StoreError> {
    let old: Vec<i64> = old.iter().map(|id| id.0).collect();
    let rows = sql
        .query(
            "DELETE FROM bodies WHERE send_id IN (SELECT value FROM json_each($1)) RETURNING send_id, data IS NULL",
            &[to_json(&old).into()],
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

/// A server with counters of one grain from before a moment (seconds since 1970). Each event is counted in the total too, so
/// that those tell of all; they go last.
pub(crate) async fn find_server_with_counters(
    sql: &Sql<'_>,
    grain: Grain,
    before: i64,
) -> Result<Option<ServerId>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT s.id FROM servers s WHERE EXISTS (
                 SELECT 1 FROM counters c WHERE c.server_id = s.id AND c.grain = $1 AND c.shape = 0 AND c.at < $2)
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
    let mut removed = 0;
    for shape in Shape::ALL.into_iter().rev() {
        if removed >= limit as u64 {
            break;
        }
        removed += sql
            .execute(
                "DELETE FROM counters WHERE server_id = $1 AND grain = $2 AND shape = $3 AND (at, dimensions) IN (
                     SELECT at, dimensions FROM counters WHERE server_id = $1 AND grain = $2 AND shape = $3 AND at < $4
                     LIMIT $5)",
                &[
                    server_id.0.into(),
                    grain.code().into(),
                    shape.code().into(),
                    before.into(),
                    (limit as i64 - removed as i64).into(),
                ],
            )
            .await?;
    }
    Ok(removed)
}

/// A server with recipient domains, or sets of dimensions, from before a day. Of the former only whole blocks go.
pub(crate) async fn find_server_with_days(
    sql: &Sql<'_>,
    before: i64,
) -> Result<Option<ServerId>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT s.id FROM servers s
             WHERE EXISTS (SELECT 1 FROM recipient_domains r WHERE r.server_id = s.id AND r.block < $2)
                OR EXISTS (SELECT 1 FROM counter_dimensions d WHERE d.server_id = s.id AND d.last_day < $1)
             LIMIT 1",
            &[before.into(), block_start(before).into()],
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
    let params = |before: i64| [server_id.0.into(), before.into(), (limit as i64).into()];
    let days = sql
        .execute(
            "DELETE FROM recipient_domains WHERE server_id = $1 AND (block, domain) IN (
                 SELECT block, domain FROM recipient_domains WHERE server_id = $1 AND block < $2 LIMIT $3)",
            &params(block_start(before)),
        )
        .await?;
    let sets = sql
        .execute(
            "DELETE FROM counter_dimensions WHERE server_id = $1 AND id IN (
                 SELECT id FROM counter_dimensions WHERE server_id = $1 AND last_day < $2 LIMIT $3)",
            &params(before),
        )
        .await?;
    Ok(days + sets)
}
