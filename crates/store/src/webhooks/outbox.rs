//! Events waiting for webhooks: due times, claims, and removal of rows whose event no longer exists.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{EventId, ServerId, Timestamp, WebhookId};

use crate::error::StoreError;
use crate::events::feed_event::{columns, joins};
use crate::events::{FeedEvent, feed_event};
use crate::sql::{Row, Sql};
use crate::{Engine, Result, Store};

/// Duration of a node's claim. An attempt takes 15 seconds at most.
pub(crate) const CLAIM_DURATION: Duration = Duration::from_mins(2);

/// Maximum number of rows without an event that are removed in one transaction.
const ORPHANS_PER_TRANSACTION: i64 = 500;

/// Due time of a webhook's next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookDue {
    pub server_id: ServerId,
    pub webhook_id: WebhookId,
    pub due_at: Timestamp,
}

/// An event to post to a webhook now.
#[derive(Debug, Clone)]
pub struct WebhookWork {
    pub event: FeedEvent,
    /// Attempts made before.
    pub attempts: u32,
}

#[boxed_futures]
impl Store {
    /// Due time of the next event of each enabled webhook of a server that is not deleted; on PostgreSQL, of the next
    /// event that no node has claimed. Webhooks without such an event are left out.
    pub async fn list_due_webhooks(&self) -> Result<Vec<WebhookDue>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(list_due(sql, now))).await
    }

    /// Claims the events to post to a webhook now, oldest first. On SQLite a claim is only a read, and events that the
    /// caller already has (`known`) are left out. On PostgreSQL nobody else gets these events for two minutes, so claim
    /// few at a time.
    pub async fn claim_webhook_work(
        &self,
        server_id: ServerId,
        id: WebhookId,
        limit: usize,
        known: Vec<EventId>,
    ) -> Result<Vec<WebhookWork>> {
        let now = self.clock.now();
        let works = match &*self.engine {
            Engine::Sqlite { .. } => {
                self.read(move |sql| {
                    Box::pin(async move { claim(sql, server_id, id, limit, &known, 0, now).await })
                })
                .await?
            }
            Engine::Postgres(engine) => {
                let node = engine.node_number()?;
                self.write(move |sql| {
                    Box::pin(async move { claim(sql, server_id, id, limit, &known, node, now).await })
                })
                .await?
            }
        };
        // Fewer than `limit`: due rows may be left whose event no longer exists, and which can never be posted.
        if works.len() < limit && self.read(move |sql| Box::pin(has_orphans(sql, server_id, id, now))).await?
        {
            self.write(move |sql| Box::pin(remove_orphans(sql, server_id, id, now))).await?;
        }
        Ok(works)
    }

    /// Releases events that were claimed but not tried, so that nobody waits for the claim to end.
    pub async fn release_webhook_work(
        &self,
        server_id: ServerId,
        id: WebhookId,
        events: Vec<EventId>,
    ) -> Result<()> {
        if self.is_sqlite() || events.is_empty() {
            return Ok(());
        }
        self.write(move |sql| Box::pin(async move { release(sql, server_id, id, &events).await })).await
    }

    /// Releases all events that this node has claimed. For a node that stops posting.
    pub async fn release_webhook_claims(&self) -> Result<()> {
        match &*self.engine {
            // A claim is only a read.
            Engine::Sqlite { .. } => Ok(()),
            Engine::Postgres(engine) => engine.release_webhook_claims().await,
        }
    }
}

/// SQL condition: the server and its account are not deleted. Events of a deleted server wait until the server is
/// restored. Deleted servers are few, so they are read once, not looked up for each webhook.
macro_rules! is_active {
    () => {
        "w.server_id NOT IN (SELECT s.id FROM servers s WHERE s.delete_at IS NOT NULL
             UNION ALL SELECT s.id FROM accounts a JOIN servers s ON s.account_id = a.id WHERE a.delete_at IS NOT NULL)"
    };
}

/// Due time of the next event of each enabled webhook: an index lookup for each webhook.
pub(crate) async fn list_due(sql: &Sql<'_>, now: Timestamp) -> Result<Vec<WebhookDue>, StoreError> {
    let text = if sql.is_sqlite() {
        // Without `LIMIT -1`, SQLite looks up each due time twice. `$1 = $1` uses up the parameter, which only
        // PostgreSQL needs.
        concat!(
            "SELECT server_id, id, due_at FROM (
                 SELECT w.server_id, w.id, (SELECT q.due_at FROM webhook_queue q WHERE q.server_id = w.server_id
                     AND q.webhook_id = w.id AND $1 = $1 ORDER BY q.due_at LIMIT 1) AS due_at
                 FROM webhooks w WHERE w.enabled = 1 AND ",
            is_active!(),
            " LIMIT -1) WHERE due_at IS NOT NULL"
        )
    } else {
        concat!(
            "SELECT w.server_id, w.id, q.due_at FROM webhooks w CROSS JOIN LATERAL (
                 SELECT due_at FROM webhook_queue q WHERE q.server_id = w.server_id AND q.webhook_id = w.id
                     AND (q.claimed_until IS NULL OR q.claimed_until <= $1) ORDER BY q.due_at LIMIT 1) q
             WHERE w.enabled = 1 AND ",
            is_active!()
        )
    };
    let rows = sql.query_with_generic_plan(text, &[now.into()]).await?;
    let read = |row: &Row| {
        Ok(WebhookDue {
            server_id: ServerId(row.int(0)?),
            webhook_id: WebhookId(row.int(1)?),
            due_at: row.time(2)?,
        })
    };
    rows.iter().map(read).collect()
}

/// Claims due events of a webhook, oldest first. On PostgreSQL no other node than `node` gets these events for two
/// minutes. On SQLite there is one process, which passes the events that it already has as `known`.
pub(crate) async fn claim(
    sql: &Sql<'_>,
    server_id: ServerId,
    webhook_id: WebhookId,
    limit: usize,
    known: &[EventId],
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
        let limit = (limit + known.len()) as i64;
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
        let until = now.plus(CLAIM_DURATION);
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
    let read = |row: &Row| {
        Ok(WebhookWork { event: feed_event::read(row)?, attempts: row.int(feed_event::COLUMN_COUNT)? as u32 })
    };
    let works: Result<Vec<WebhookWork>, StoreError> = rows.iter().map(read).collect();
    let mut works = works?;
    // PostgreSQL returns an event of `known` only if a replay has ended its old claim. The statement above has claimed
    // this event again, so dropping it here would block it until that claim expires.
    if sql.is_sqlite() {
        works.retain(|work| !known.contains(&work.event.id));
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

/// Whether rows are left whose event no longer exists, for example because the event was replayed just when it expired.
pub(crate) async fn has_orphans(
    sql: &Sql<'_>,
    server_id: ServerId,
    webhook_id: WebhookId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let text = concat!(orphans!(), " LIMIT 1");
    Ok(sql.query_opt(text, &[server_id.0.into(), webhook_id.0.into(), now.into()]).await?.is_some())
}

/// Removes some rows whose event no longer exists.
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
    let params = [server_id.0.into(), webhook_id.0.into(), now.into(), ORPHANS_PER_TRANSACTION.into()];
    sql.execute(text, &params).await
}

/// Releases events that were claimed but not tried. SQLite has no claims.
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
