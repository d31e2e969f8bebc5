//! Removing what is old, few rows at a time: each step is short, so that nobody waits for it.

use postroad_model::SendId;

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

/// Bodies have their own way: some are files.
pub(crate) async fn remove_rows(
    sql: &Sql<'_>,
    which: OldRows,
    before: i64,
    limit: usize,
) -> Result<u64, StoreError> {
    let text = match which {
        OldRows::Transcripts => {
            "DELETE FROM delivery_transcripts WHERE (server_id, message_id, delivery_id) IN (
                 SELECT old.server_id, old.message_id, old.delivery_id FROM servers s
                 JOIN delivery_transcripts old ON old.server_id = s.id AND old.message_id < $1 LIMIT $2)"
        }
        OldRows::Deliveries => {
            "DELETE FROM deliveries WHERE (server_id, message_id, id) IN (
                 SELECT old.server_id, old.message_id, old.id FROM servers s
                 JOIN deliveries old ON old.server_id = s.id AND old.message_id < $1 LIMIT $2)"
        }
        OldRows::Events => {
            "DELETE FROM events WHERE (server_id, id) IN (
                 SELECT old.server_id, old.id FROM counter_marks c
                 JOIN events old ON old.server_id = c.server_id AND old.id < $1 AND old.id <= c.event_id LIMIT $2)"
        }
        OldRows::EventsOfMessages if sql.is_sqlite() => {
            "DELETE FROM events WHERE (server_id, id) IN (
                 SELECT old.server_id, old.id FROM counter_marks c
                 JOIN events old ON old.server_id = c.server_id AND old.message_id > 0 AND old.message_id < $1
                                AND old.id <= c.event_id LIMIT $2)"
        }
        OldRows::EventsOfMessages => {
            "DELETE FROM events WHERE (server_id, id) IN (
                 SELECT old.server_id, old.id FROM counter_marks c
                 JOIN events old ON old.server_id = c.server_id AND old.message_id > 0 AND old.message_id < $1
                                AND (old.xact, old.id) <= (c.xact, c.event_id) LIMIT $2)"
        }
        OldRows::Messages => {
            "DELETE FROM messages WHERE (server_id, id) IN (
                 SELECT old.server_id, old.id FROM servers s
                 JOIN messages old ON old.server_id = s.id AND old.id < $1 LIMIT $2)"
        }
        OldRows::Sends => {
            "DELETE FROM sends WHERE (server_id, id) IN (
                 SELECT old.server_id, old.id FROM servers s
                 JOIN sends old ON old.server_id = s.id AND old.id < $1 LIMIT $2)"
        }
        OldRows::WebhookAttempts => {
            "DELETE FROM webhook_attempts WHERE (server_id, id) IN (
                 SELECT old.server_id, old.id FROM servers s
                 JOIN webhook_attempts old ON old.server_id = s.id AND old.id < $1 LIMIT $2)"
        }
        OldRows::Bodies => return Err(StoreError::Internal("bodies are removed with their files".into())),
    };
    sql.execute(text, &[before.into(), (limit as i64).into()]).await
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

/// Counters of one grain from before a moment (seconds since 1970).
pub(crate) async fn remove_counters(
    sql: &Sql<'_>,
    grain: Grain,
    before: i64,
    limit: usize,
) -> Result<u64, StoreError> {
    let params = [grain.code().into(), before.into(), (limit as i64).into()];
    let split = sql
        .execute(
            "DELETE FROM counters WHERE (server_id, grain, dimensions, at) IN (
                 SELECT old.server_id, old.grain, old.dimensions, old.at FROM counter_dimensions d
                 JOIN counters old ON old.server_id = d.server_id AND old.grain = $1 AND old.dimensions = d.id
                                  AND old.at < $2 LIMIT $3)",
            &params,
        )
        .await?;
    let totals = sql
        .execute(
            "DELETE FROM counters WHERE (server_id, grain, dimensions, at) IN (
                 SELECT old.server_id, old.grain, old.dimensions, old.at FROM servers s
                 JOIN counters old ON old.server_id = s.id AND old.grain = $1 AND old.dimensions = 0
                                  AND old.at < $2 LIMIT $3)",
            &params,
        )
        .await?;
    Ok(split + totals)
}

/// Days of recipient domains, likewise, and sets of dimensions that have no counters any more.
pub(crate) async fn remove_counted_days(sql: &Sql<'_>, before: i64, limit: usize) -> Result<u64, StoreError> {
    let params = [before.into(), (limit as i64).into()];
    let days = sql
        .execute(
            "DELETE FROM recipient_domain_days WHERE (server_id, day, domain) IN (
                 SELECT old.server_id, old.day, old.domain FROM servers s
                 JOIN recipient_domain_days old ON old.server_id = s.id AND old.day < $1 LIMIT $2)",
            &params,
        )
        .await?;
    let sets = sql
        .execute(
            "DELETE FROM counter_dimensions WHERE (server_id, id) IN (
                 SELECT old.server_id, old.id FROM counter_dimensions old WHERE old.last_day < $1 LIMIT $2)",
            &params,
        )
        .await?;
    Ok(days + sets)
}
