//! Scheduled messages that become due: they become pending, or are held.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use postroad_boxed_futures::boxed_futures;
use postroad_model::{IdGenerator, MessageId, ServerId, Status, Timestamp};

use super::due_holds::{DueEntry, count_and_hold};
use super::waiting;
use super::waiting::{EntryChange, Key};
use crate::accept::initial::{SCHEDULED_UNCOUNTED, hour_at};
use crate::error::StoreError;
use crate::sql::{Sql, to_json};
use crate::{Engine, Result, SqlOperationWithIds, Store};

/// Maximum number of scheduled messages made pending in one transaction.
const MESSAGES_PER_TRANSACTION_MAX: usize = 100;
/// Maximum number of servers that share a transaction.
const SERVERS_PER_TRANSACTION_MAX: usize = 20;
/// Maximum time for which one call makes scheduled messages pending, while due messages wait to be claimed.
const PROMOTION_TIME_MAX: Duration = Duration::from_millis(250);

#[boxed_futures]
impl Store {
    /// When the first scheduled message is due.
    pub async fn next_scheduled(&self) -> Result<Option<Timestamp>> {
        let text = "SELECT due_at FROM queue WHERE scheduled > 0 ORDER BY due_at, message_id LIMIT 1";
        self.fetch_opt(text, Vec::new(), |row| row.time(0)).await
    }

    /// Makes about `limit` due messages pending, or holds them; returns whether there may be more. A failure is only
    /// logged, because it must not stop the claims; the next call tries again.
    pub(super) async fn promote_due(&self, limit: usize) -> bool {
        match Box::pin(self.try_promote_due(limit)).await {
            Ok(has_more) => has_more,
            Err(error) => {
                tracing::warn!(%error, "making scheduled messages pending failed; retrying");
                false
            }
        }
    }

    /// Promotes a few messages of each server at a time, so that no server waits for the mail that another one has
    /// scheduled for the same minute. The transactions are small, because a held message costs several statements.
    async fn try_promote_due(&self, limit: usize) -> Result<bool> {
        let now = self.clock.now();
        // Called every second, usually without effect: the read avoids a useless write.
        let due = self.read(move |sql| {
            Box::pin(async move {
                if has_due(sql, now).await? { list_due_servers(sql, now).await } else { Ok(Vec::new()) }
            })
        });
        let mut servers = VecDeque::from(due.await?);
        let started_at = Instant::now();
        let last = self.last_promoted.load(Ordering::Relaxed);
        servers.rotate_left(servers.partition_point(|server_id| server_id.0 <= last));
        let mut left = limit;
        while left > 0 && !servers.is_empty() && started_at.elapsed() < PROMOTION_TIME_MAX {
            let group: Vec<ServerId> =
                servers.drain(..servers.len().min(SERVERS_PER_TRANSACTION_MAX)).collect();
            if let Some(last) = group.last() {
                self.last_promoted.store(last.0, Ordering::Relaxed);
            }
            let share = (MESSAGES_PER_TRANSACTION_MAX.min(left) / group.len()).max(1);
            let changes = self.promote_some(group.clone(), share, now).await?;
            left = left.saturating_sub(changes.len());
            let count_of = |id| changes.iter().filter(|((server_id, _), _)| *server_id == id).count();
            servers.extend(group.into_iter().filter(|server_id| count_of(*server_id) == share));
        }
        Ok(limit > 0 && (left == 0 || !servers.is_empty()))
    }

    async fn promote_some(
        &self,
        servers: Vec<ServerId>,
        share: usize,
        now: Timestamp,
    ) -> Result<Vec<(Key, EntryChange)>> {
        let operation: SqlOperationWithIds<Vec<(Key, EntryChange)>> = Box::new(move |sql, ids| {
            Box::pin(async move { promote(sql, &ids, &servers, share as i64, now).await })
        });
        let changes = match &*self.engine {
            Engine::Sqlite { engine, ids } => engine.change_unclaimed(Arc::clone(ids), operation).await?,
            Engine::Postgres(engine) => engine.write_with_ids(operation).await?,
        };
        // Messages may be held, and limits reached: both cause events.
        if !changes.is_empty() {
            self.notifier.notify(changes.iter().map(|((server_id, _), _)| *server_id));
        }
        Ok(changes)
    }

    /// Makes a claimed message scheduled again, because its `send_at` is in the future after the clock went back. Has
    /// no effect on a message that is being sent.
    pub async fn postpone(&self, server_id: ServerId, id: MessageId, send_at: Timestamp) -> Result<()> {
        let key = (server_id, id);
        let operation: SqlOperationWithIds<((), EntryChange)> =
            Box::new(move |sql, _| Box::pin(postpone(sql, key, send_at)));
        match &*self.engine {
            Engine::Sqlite { engine, ids } => {
                engine.change_waiting(key, Arc::clone(ids), (), operation).await?
            }
            Engine::Postgres(engine) => engine.change_waiting(key, operation).await?,
        };
        Ok(())
    }
}

/// Whether scheduled messages are due.
pub(crate) async fn has_due(sql: &Sql<'_>, now: Timestamp) -> Result<bool, StoreError> {
    let text = "SELECT message_id FROM queue WHERE scheduled > 0 AND due_at <= $1 LIMIT 1";
    Ok(sql.query_opt(text, &[now.into()]).await?.is_some())
}

/// Servers whose scheduled messages are due, in the order of their ids. Reads one entry of each server that has any.
async fn list_due_servers(sql: &Sql<'_>, now: Timestamp) -> Result<Vec<ServerId>, StoreError> {
    let text = if sql.is_sqlite() {
        "WITH RECURSIVE senders (server_id) AS (
             SELECT (SELECT q.server_id FROM queue q INDEXED BY queue_scheduled_by_server_due
                     WHERE q.scheduled > 0 ORDER BY q.server_id LIMIT 1)
             UNION ALL
             SELECT (SELECT q.server_id FROM queue q INDEXED BY queue_scheduled_by_server_due
                     WHERE q.scheduled > 0 AND q.server_id > senders.server_id ORDER BY q.server_id LIMIT 1)
             FROM senders WHERE senders.server_id IS NOT NULL)
         SELECT server_id FROM senders
         WHERE EXISTS (SELECT 1 FROM queue q INDEXED BY queue_scheduled_by_server_due
             WHERE q.server_id = senders.server_id AND q.scheduled > 0 AND q.due_at <= $1) ORDER BY server_id"
    } else {
        "WITH RECURSIVE senders (server_id) AS (
             SELECT (SELECT q.server_id FROM queue q WHERE q.scheduled > 0 ORDER BY q.server_id LIMIT 1)
             UNION ALL
             SELECT (SELECT q.server_id FROM queue q
                     WHERE q.scheduled > 0 AND q.server_id > senders.server_id ORDER BY q.server_id LIMIT 1)
             FROM senders WHERE senders.server_id IS NOT NULL)
         SELECT senders.server_id FROM senders
         CROSS JOIN LATERAL (SELECT q.message_id FROM queue q WHERE q.server_id = senders.server_id
             AND q.scheduled > 0 AND q.due_at <= $1 ORDER BY q.due_at, q.message_id LIMIT 1) AS due
         ORDER BY senders.server_id"
    };
    let rows = sql.query(text, &[now.into()]).await?;
    rows.iter().map(|row| row.int(0).map(ServerId)).collect()
}

/// Makes due messages of these servers pending, the earliest first, at most `share` of each server. Holds messages of
/// servers in development, and those beyond the limits of their server and account. Returns the new state of each
/// entry.
pub(crate) async fn promote(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    servers: &[ServerId],
    share: i64,
    now: Timestamp,
) -> Result<Vec<(Key, EntryChange)>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT server_id, message_id, due_at, scheduled, released_at FROM queue INDEXED BY queue_scheduled_by_server_due
         WHERE server_id = $1 AND scheduled > 0 AND due_at <= $2 ORDER BY due_at, message_id LIMIT $3"
    } else {
        "SELECT server_id, message_id, due_at, scheduled, released_at FROM queue
         WHERE server_id = $1 AND scheduled > 0 AND due_at <= $2 AND claimed_node IS NULL
         ORDER BY due_at, message_id LIMIT $3 FOR UPDATE SKIP LOCKED"
    };
    let mut due = Vec::new();
    for server_id in servers {
        for row in sql.query(text, &[server_id.0.into(), now.into(), share.into()]).await? {
            due.push(DueEntry::read(&row)?);
        }
    }
    let held = count_and_hold(sql, ids, &due, now).await?;
    let mut changes = Vec::with_capacity(due.len());
    let mut pending = Vec::new();
    for DueEntry { key, due_at, .. } in due {
        let (server_id, message_id) = key;
        if held.contains(&key) {
            changes.push((key, EntryChange::Gone));
        } else {
            pending.push([server_id.0, message_id.0]);
            changes.push((key, EntryChange::Queued(pending_due_at(due_at, now))));
        }
    }
    if !pending.is_empty() {
        make_pending(sql, &pending, now).await?;
    }
    Ok(changes)
}

/// Makes a message scheduled again whose `send_at` is in the future after the clock went back, unless the message is
/// being sent. Ends a claim on the message.
pub(crate) async fn postpone(
    sql: &Sql<'_>,
    key: Key,
    send_at: Timestamp,
) -> Result<((), EntryChange), StoreError> {
    if waiting::lock_and_check_sending(sql, key).await? {
        return Ok(((), EntryChange::Unchanged));
    }
    put_back(sql, key, send_at).await?;
    Ok(((), EntryChange::Queued(send_at)))
}

/// Makes a message scheduled again. The message does not count again: the limits counted it when it first became due.
pub(crate) async fn put_back(
    sql: &Sql<'_>,
    (server_id, message_id): Key,
    send_at: Timestamp,
) -> Result<(), StoreError> {
    let text = if sql.is_sqlite() {
        "UPDATE queue SET due_at = $3, scheduled = $4 WHERE server_id = $1 AND message_id = $2"
    } else {
        "UPDATE queue SET due_at = $3, scheduled = $4, claimed_node = NULL, claimed_epoch = NULL
         WHERE server_id = $1 AND message_id = $2"
    };
    let params = [server_id.0.into(), message_id.0.into(), send_at.into(), SCHEDULED_UNCOUNTED.into()];
    sql.execute(text, &params).await?;
    let text = "UPDATE messages SET status = $3 WHERE server_id = $1 AND id = $2 AND status = $4";
    let (scheduled, pending) = (Status::Scheduled.as_str().into(), Status::Pending.as_str().into());
    sql.execute(text, &[server_id.0.into(), message_id.0.into(), scheduled, pending]).await?;
    Ok(())
}

/// Due time of a message that becomes pending now. It is within the current hour, in which limits counted the message:
/// if the message is rescheduled, `uncount` subtracts it from the hour of its due time.
fn pending_due_at(due_at: Timestamp, now: Timestamp) -> Timestamp {
    if due_at < hour_start(now) { now } else { due_at }
}

fn hour_start(now: Timestamp) -> Timestamp {
    Timestamp::from_micros(hour_at(now) * 3_600 * 1_000_000)
}

/// Makes these messages pending and available for claims, due as `pending_due_at` says.
async fn make_pending(sql: &Sql<'_>, keys: &[[i64; 2]], now: Timestamp) -> Result<(), StoreError> {
    let (messages, queue) = if sql.is_sqlite() {
        (
            "UPDATE messages SET status = $2 WHERE status = $3 AND (server_id, id) IN (
                 SELECT value ->> 0, value ->> 1 FROM json_each($1))",
            "UPDATE queue SET scheduled = 0, due_at = CASE WHEN due_at < $2 THEN $3 ELSE due_at END
             WHERE (server_id, message_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each($1))",
        )
    } else {
        (
            "UPDATE messages SET status = $2
             FROM (SELECT (value->>0)::bigint AS server_id, (value->>1)::bigint AS id
                   FROM json_array_elements(CAST($1::text AS json)) AS value) AS row
             WHERE messages.server_id = row.server_id AND messages.id = row.id AND status = $3",
            "UPDATE queue SET scheduled = 0, due_at = CASE WHEN due_at < $2 THEN $3 ELSE due_at END
             FROM (SELECT (value->>0)::bigint AS server_id, (value->>1)::bigint AS id
                   FROM json_array_elements(CAST($1::text AS json)) AS value) AS row
             WHERE queue.server_id = row.server_id AND queue.message_id = row.id",
        )
    };
    let keys = to_json(&keys);
    let statuses = [Status::Pending.as_str(), Status::Scheduled.as_str()];
    sql.execute(messages, &[keys.as_str().into(), statuses[0].into(), statuses[1].into()]).await?;
    sql.execute(queue, &[keys.into(), hour_start(now).into(), now.into()]).await?;
    Ok(())
}
