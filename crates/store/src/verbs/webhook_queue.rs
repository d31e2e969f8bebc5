//! The outbox as webhooks are told from it: what is due, claims, replays, and the end of an endpoint.

use std::time::Duration;

use postroad_model::idgen::first_id_at;
use postroad_model::{EventId, EventKind, IdGenerator, ServerId, Timestamp, WebhookId};
use serde_json::json;

use super::told::{self, columns, joins};
use super::{events, webhooks};
use crate::error::StoreError;
use crate::records::{NewEvent, Replay, Replayed, WebhookDue, WebhookWork};
use crate::sql::{Row, Sql};

/// How long a node has what it claimed. An attempt takes 15 seconds at most.
pub(super) const CLAIMED_FOR: Duration = Duration::from_mins(2);
/// The id of an event is made at most this long after what it tells of.
const ID_DELAY_MAX: Duration = Duration::from_hours(1);
/// Rows that one write forgets.
const ORPHANS_AT_ONCE: i64 = 500;
/// Events that a replay puts into the queue at once.
const REPLAY_EVENTS: i64 = 500;

/// When each enabled webhook has something to be told next: one look into the index for each.
pub(crate) async fn due(sql: &Sql<'_>, now: Timestamp) -> Result<Vec<WebhookDue>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT server_id, id, due_at FROM (
             SELECT w.server_id, w.id, (SELECT q.due_at FROM webhook_queue q WHERE q.server_id = w.server_id
                 AND q.webhook_id = w.id AND $1 = $1 ORDER BY q.due_at LIMIT 1) AS due_at
             FROM webhooks w WHERE w.enabled = 1) WHERE due_at IS NOT NULL"
    } else {
        "SELECT w.server_id, w.id, q.due_at FROM webhooks w CROSS JOIN LATERAL (
             SELECT due_at FROM webhook_queue q WHERE q.server_id = w.server_id AND q.webhook_id = w.id
                 AND (q.claimed_until IS NULL OR q.claimed_until <= $1) ORDER BY q.due_at LIMIT 1) q
         WHERE w.enabled = 1"
    };
    let rows = sql.query(text, &[now.into()]).await?;
    let read = |row: &Row| {
        Ok(WebhookDue {
            server_id: ServerId(row.int(0)?),
            webhook_id: WebhookId(row.int(1)?),
            due_at: row.time(2)?,
        })
    };
    rows.iter().map(read).collect()
}

/// Hands out what is due for a webhook, oldest first. On PostgreSQL nobody but `node` has it for two minutes; SQLite has
/// one process, which says what it has already.
pub(crate) async fn claim(
    sql: &Sql<'_>,
    server_id: ServerId,
    webhook_id: WebhookId,
    limit: usize,
    held: &[EventId],
    node: i64,
    now: Timestamp,
) -> Result<Vec<WebhookWork>, StoreError> {
    let rows = if sql.is_sqlite() {
        let text = concat!(
            "SELECT ",
            columns!(),
            ", q.attempts FROM webhook_queue q
             JOIN events e ON e.server_id = q.server_id AND e.id = q.event_id ",
            joins!(),
            " WHERE q.server_id = $1 AND q.webhook_id = $2 AND q.due_at <= $3 ORDER BY q.due_at, q.event_id LIMIT $4"
        );
        let limit = (limit + held.len()) as i64;
        sql.query(text, &[server_id.0.into(), webhook_id.0.into(), now.into(), limit.into()]).await?
    } else {
        let text = concat!(
            "WITH wanted AS (
                 SELECT event_id FROM webhook_queue w WHERE server_id = $1 AND webhook_id = $2 AND due_at <= $3
                     AND (claimed_until IS NULL OR claimed_until <= $3)
                     AND EXISTS (SELECT 1 FROM events e WHERE e.server_id = w.server_id AND e.id = w.event_id)
                 ORDER BY due_at, event_id LIMIT $4 FOR UPDATE SKIP LOCKED),
             q AS (
                 UPDATE webhook_queue SET claimed_until = $5, claimed_node = $6 FROM wanted
                 WHERE server_id = $1 AND webhook_id = $2 AND webhook_queue.event_id = wanted.event_id
                 RETURNING server_id, webhook_queue.event_id, attempts, due_at)
             SELECT ",
            columns!(),
            ", q.attempts FROM q
             JOIN events e ON e.server_id = q.server_id AND e.id = q.event_id ",
            joins!(),
            " ORDER BY q.due_at, q.event_id"
        );
        let until = now.plus(CLAIMED_FOR);
        let params = [
            server_id.0.into(),
            webhook_id.0.into(),
            now.into(),
            (limit as i64).into(),
            until.into(),
            node.into(),
        ];
        sql.query(text, &params).await?
    };
    let read =
        |row: &Row| Ok(WebhookWork { event: told::read(row)?, attempts: row.int(told::COLUMNS)? as u32 });
    let works: Result<Vec<WebhookWork>, StoreError> = rows.iter().map(read).collect();
    let mut works = works?;
    // On PostgreSQL a claim is nobody else's, and one of a held event is a replay: dropped here it would stay claimed.
    if sql.is_sqlite() {
        works.retain(|work| !held.contains(&work.event.event.id));
        works.truncate(limit);
    }
    Ok(works)
}

macro_rules! orphans {
    () => {
        "SELECT q.event_id FROM webhook_queue q WHERE q.server_id = $1 AND q.webhook_id = $2 AND q.due_at <= $3
         AND NOT EXISTS (SELECT 1 FROM events e WHERE e.server_id = q.server_id AND e.id = q.event_id)"
    };
}

/// Whether events are to be told that are gone, as when they were replayed just when they became too old.
pub(crate) async fn has_orphans(
    sql: &Sql<'_>,
    server_id: ServerId,
    webhook_id: WebhookId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let text = concat!(orphans!(), " LIMIT 1");
    Ok(sql.query_opt(text, &[server_id.0.into(), webhook_id.0.into(), now.into()]).await?.is_some())
}

/// Forgets some of them.
pub(crate) async fn remove_orphans(
    sql: &Sql<'_>,
    server_id: ServerId,
    webhook_id: WebhookId,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let text = concat!(
        "DELETE FROM webhook_queue WHERE server_id = $1 AND webhook_id = $2 AND event_id IN (",
        orphans!(),
        " LIMIT $4)"
    );
    let params = [server_id.0.into(), webhook_id.0.into(), now.into(), ORPHANS_AT_ONCE.into()];
    sql.execute(text, &params).await
}

/// Gives back what was claimed and not tried. SQLite keeps no claims.
pub(crate) async fn release(
    sql: &Sql<'_>,
    server_id: ServerId,
    webhook_id: WebhookId,
    events: &[EventId],
) -> Result<(), StoreError> {
    for event in events {
        sql.execute(
            "UPDATE webhook_queue SET claimed_until = NULL
             WHERE server_id = $1 AND webhook_id = $2 AND event_id = $3",
            &[server_id.0.into(), webhook_id.0.into(), event.0.into()],
        )
        .await?;
    }
    Ok(())
}

/// Puts events into the queue again, those that wait already to the front of it. Whatever a webhook does not want is
/// left out.
pub(crate) async fn replay(
    sql: &Sql<'_>,
    server_id: ServerId,
    webhook_id: WebhookId,
    replay: Replay,
    now: Timestamp,
) -> Result<Replayed, StoreError> {
    let webhook = webhooks::find(sql, server_id, webhook_id).await?.ok_or(StoreError::NotFound)?;
    let (rows, continue_after) = match replay {
        Replay::Event(id) => {
            let text = "SELECT id, kind FROM events WHERE server_id = $1 AND id = $2";
            let rows = sql.query(text, &[server_id.0.into(), id.0.into()]).await?;
            if rows.is_empty() {
                return Err(StoreError::NotFound);
            }
            (rows, None)
        }
        Replay::Between { from, to, after } => {
            // Ids are made after the moment they tell of, and soon after it.
            let first = first_id_at(from).max(after.0 + 1);
            let last = first_id_at(to.plus(ID_DELAY_MAX));
            let rows = sql
                .query(
                    "SELECT id, kind FROM events WHERE server_id = $1 AND id >= $2 AND id < $3 AND at >= $4 AND at < $5
                     ORDER BY id LIMIT $6",
                    &[
                        server_id.0.into(),
                        first.into(),
                        last.into(),
                        from.into(),
                        to.into(),
                        REPLAY_EVENTS.into(),
                    ],
                )
                .await?;
            let is_full = rows.len() as i64 == REPLAY_EVENTS;
            let last = rows.last().filter(|_| is_full).map(|row| row.int(0).map(EventId)).transpose()?;
            (rows, last)
        }
    };
    let mut events = 0;
    for row in &rows {
        if !webhook.events.contains(row.name(1, EventKind::parse)?) {
            continue;
        }
        events += 1;
        // One that is just being told is told again: who asks for a replay has seen the post, or missed it.
        let text = if sql.is_sqlite() {
            "INSERT INTO webhook_queue (server_id, webhook_id, event_id, due_at, attempts) VALUES ($1, $2, $3, $4, 0)
             ON CONFLICT (server_id, webhook_id, event_id) DO UPDATE SET due_at = excluded.due_at"
        } else {
            "INSERT INTO webhook_queue (server_id, webhook_id, event_id, due_at, attempts) VALUES ($1, $2, $3, $4, 0)
             ON CONFLICT (server_id, webhook_id, event_id)
             DO UPDATE SET due_at = excluded.due_at, claimed_until = NULL"
        };
        sql.execute(text, &[server_id.0.into(), webhook_id.0.into(), row.int(0)?.into(), now.into()]).await?;
    }
    Ok(Replayed { events, continue_after })
}

/// Disables an endpoint and tells of it. `false` if it was disabled before, or is not failing since `failing_before`.
pub(crate) async fn disable(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    server_id: ServerId,
    webhook_id: WebhookId,
    reason: String,
    failing_before: Option<Timestamp>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed = sql
        .execute(
            "UPDATE webhooks SET enabled = 0, disabled_reason = $3, updated_at = $4
             WHERE server_id = $1 AND id = $2 AND enabled = 1
                 AND (CAST($5 AS BIGINT) IS NULL OR failing_since <= CAST($5 AS BIGINT))",
            &[
                server_id.0.into(),
                webhook_id.0.into(),
                reason.as_str().into(),
                now.into(),
                failing_before.into(),
            ],
        )
        .await?;
    if changed == 0 {
        return Ok(false);
    }
    let Some(webhook) = webhooks::find(sql, server_id, webhook_id).await? else { return Ok(false) };
    let data = json!({ "webhook": { "id": webhook.id, "url": webhook.url, "reason": reason } });
    let event = NewEvent { kind: EventKind::WebhookDisabled, data: data.to_string() };
    events::add_of_server(sql, ids, server_id, &event, now).await?;
    Ok(true)
}
