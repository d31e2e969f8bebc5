//! Cancels and reschedules messages for their sender, one by one or all of a tag or batch.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{BatchId, DomainName, IdGenerator, MessageId, ServerId, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::admin::{cancelled_event, describe_message};
use super::release::uncount;
use super::waiting::{EntryChange, Key, change_status, find, lock_and_check_sending, remove_entry};
use crate::accept::SendOptions;
use crate::accept::initial::{SCHEDULED, SCHEDULED_UNCOUNTED};
use crate::error::StoreError;
use crate::outcomes::NewDelivery;
use crate::sql::{Row, Sql, to_json};
use crate::{ChangeDescription, Engine, Result, SqlOperationWithIds, Store};

/// A sender's change to a scheduled message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleChange {
    Cancel,
    /// Send at this time instead.
    MoveTo(Timestamp),
}

/// Result of a `ScheduleChange`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleChangeResult {
    Done,
    /// The message is being sent, was tried already, or no longer waits to be sent.
    TooLate,
    /// Nothing was changed: the message expires at this time, which is not later than the new send time.
    ExpiresBefore(Timestamp),
}

/// A change of a message's send time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reschedule {
    /// When the message was rescheduled.
    pub at: Timestamp,
    /// The new send time.
    pub send_at: Timestamp,
}

/// Maximum number of reschedules kept per message; older ones are dropped.
const RESCHEDULES_MAX: usize = 100;

/// Selects scheduled messages by their tag or batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduledOf {
    Tag(String),
    Batch(BatchId),
}

/// A page of messages whose send time is in the future, or has come without an attempt so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduledPage {
    pub matching: Vec<MessageId>,
    /// The last entry examined, after which the next page begins; `None` if this is the last page.
    pub next: Option<MessageId>,
}

#[boxed_futures]
impl Store {
    /// Messages with ids above `after` to which the change applies. Examines at most `limit` entries of the server,
    /// whether they match or not.
    pub async fn list_scheduled(
        &self,
        server_id: ServerId,
        of: ScheduledOf,
        change: ScheduleChange,
        after: MessageId,
        limit: usize,
    ) -> Result<ScheduledPage> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(list(sql, server_id, of, change, now, after, limit as i64))).await
    }

    /// The changes of a message's send time, oldest first.
    pub async fn list_reschedules(&self, server_id: ServerId, id: MessageId) -> Result<Vec<Reschedule>> {
        self.read(move |sql| Box::pin(list_reschedules(sql, (server_id, id)))).await
    }

    /// Changes a message that is scheduled, or that is pending and not being sent. Ends a claim on the message. Mail to
    /// `exempt_domain` does not count against limits.
    pub async fn change_scheduled(
        &self,
        server_id: ServerId,
        id: MessageId,
        change: ScheduleChange,
        exempt_domain: DomainName,
    ) -> Result<ScheduleChangeResult> {
        let (now, key) = (self.clock.now(), (server_id, id));
        let operation: SqlOperationWithIds<(ScheduleChangeResult, EntryChange)> =
            Box::new(move |sql, ids| {
                Box::pin(async move { apply(sql, &ids, key, change, Some(&exempt_domain), now).await })
            });
        let operation = self.with_audit_entry(operation, move |(changed, _)| {
            (*changed == ScheduleChangeResult::Done).then(|| with_send_at(describe_message(id), change))
        });
        let _permit = self.acquire_audit_permit(server_id).await;
        let (changed, entry) = match &*self.engine {
            Engine::Sqlite { engine, ids } => {
                engine.change_waiting(key, Arc::clone(ids), ScheduleChangeResult::TooLate, operation).await?
            }
            Engine::Postgres(engine) => engine.change_waiting(key, operation).await?,
        };
        self.notify_entry_change(server_id, entry);
        Ok(changed)
    }

    /// Changes those of `messages` that are still scheduled, in one transaction; returns which. Messages that would
    /// expire before their new time are not changed.
    pub async fn change_all_scheduled(
        &self,
        server_id: ServerId,
        messages: Vec<MessageId>,
        change: ScheduleChange,
    ) -> Result<Vec<MessageId>> {
        let now = self.clock.now();
        let operation: SqlOperationWithIds<Vec<(Key, EntryChange)>> = Box::new(move |sql, ids| {
            Box::pin(async move { apply_all(sql, &ids, server_id, messages, change, now).await })
        });
        let operation = self.with_audit_entry(operation, move |changes| {
            let count = ChangeDescription::from_iter([("changed".to_owned(), changes.len().into())]);
            (!changes.is_empty()).then(|| with_send_at(count, change))
        });
        let _permit = self.acquire_audit_permit(server_id).await;
        let changes = match &*self.engine {
            // Scheduled entries are never claimed.
            Engine::Sqlite { engine, ids } => engine.change_unclaimed(Arc::clone(ids), operation).await?,
            Engine::Postgres(engine) => engine.write_with_ids(operation).await?,
        };
        if let Some((_, entry)) = changes.first() {
            self.notify_entry_change(server_id, *entry);
        }
        Ok(changes.into_iter().map(|((_, id), _)| id).collect())
    }
}

/// Adds the new time, if any, to the description of a change for the audit log.
fn with_send_at(mut description: ChangeDescription, change: ScheduleChange) -> ChangeDescription {
    if let ScheduleChange::MoveTo(send_at) = change {
        description.insert("send_at".to_owned(), send_at.to_rfc3339().into());
    }
    description
}

async fn list(
    sql: &Sql<'_>,
    server_id: ServerId,
    of: ScheduledOf,
    change: ScheduleChange,
    now: Timestamp,
    after: MessageId,
    limit: i64,
) -> Result<ScheduledPage, StoreError> {
    let (mut after, mut until) = (after.0, i64::MAX);
    if let ScheduledOf::Batch(batch_id) = &of {
        // Messages of a batch have ids above the batch's id and below the id of its last send: a send's id is created
        // after the ids of its messages.
        let text = "SELECT max(id) FROM sends WHERE server_id = $1 AND batch_id = $2";
        let last = sql.query_opt(text, &[server_id.0.into(), batch_id.0.into()]).await?;
        after = after.max(batch_id.0);
        until = last.map_or(Ok(None), |row| row.int_opt(0))?.unwrap_or(0);
    }
    let text = if sql.is_sqlite() {
        "SELECT q.message_id, s.tag, s.batch_id, q.due_at, m.status, m.send_at, s.options
         FROM queue q CROSS JOIN messages m CROSS JOIN sends s
         WHERE q.server_id = $1 AND q.message_id > $2 AND q.message_id <= $3
           AND m.server_id = q.server_id AND m.id = q.message_id AND s.server_id = m.server_id AND s.id = m.send_id
         ORDER BY q.message_id LIMIT $4"
    } else {
        "SELECT q.message_id, s.tag, s.batch_id, q.due_at, m.status, m.send_at, s.options FROM (
             SELECT server_id, message_id, due_at FROM queue
             WHERE server_id = $1 AND message_id > $2 AND message_id <= $3
             ORDER BY message_id LIMIT $4) AS q
         CROSS JOIN LATERAL (SELECT send_id, send_at, status FROM messages m
             WHERE m.server_id = q.server_id AND m.id = q.message_id LIMIT 1) AS m
         CROSS JOIN LATERAL (SELECT tag, batch_id, options FROM sends s
             WHERE s.server_id = q.server_id AND s.id = m.send_id LIMIT 1) AS s
         ORDER BY q.message_id"
    };
    let rows = sql.query(text, &[server_id.0.into(), after.into(), until.into(), limit.into()]).await?;
    let mut page = ScheduledPage::default();
    for row in &rows {
        let id = MessageId(row.int(0)?);
        if of.includes(row)? && is_changeable(row, change, now)? {
            page.matching.push(id);
        }
        page.next = Some(id);
    }
    if (rows.len() as i64) < limit {
        page.next = None;
    }
    Ok(page)
}

impl ScheduledOf {
    fn includes(&self, row: &Row) -> Result<bool, StoreError> {
        Ok(match self {
            Self::Tag(tag) => row.text_opt(1)?.as_ref() == Some(tag),
            Self::Batch(batch_id) => row.int_opt(2)? == Some(batch_id.0),
        })
    }
}

/// Whether the change applies: the message has a send time, was not tried yet, and does not have the new time already.
fn is_changeable(row: &Row, change: ScheduleChange, now: Timestamp) -> Result<bool, StoreError> {
    Ok(match row.parsed(4, Status::parse)? {
        Status::Scheduled => change != ScheduleChange::MoveTo(row.time(3)?),
        // A message that is due already cannot become due earlier.
        Status::Pending if matches!(change, ScheduleChange::MoveTo(new) if new <= now) => false,
        Status::Pending => row.time_opt(5)?.is_some() || row.json::<SendOptions>(6)?.send_at.is_some(),
        _ => false,
    })
}

/// Changes entries that are still scheduled. Entries that became due stay unchanged: they may be claimed.
async fn apply_all(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    server_id: ServerId,
    messages: Vec<MessageId>,
    change: ScheduleChange,
    now: Timestamp,
) -> Result<Vec<(Key, EntryChange)>, StoreError> {
    let mut changes = Vec::with_capacity(messages.len());
    for message_id in messages {
        let key = (server_id, message_id);
        let text = if sql.is_sqlite() {
            "SELECT message_id FROM queue WHERE server_id = $1 AND message_id = $2 AND scheduled > 0"
        } else {
            "SELECT message_id FROM queue WHERE server_id = $1 AND message_id = $2 AND scheduled > 0
             AND claimed_node IS NULL FOR UPDATE"
        };
        if sql.query_opt(text, &[server_id.0.into(), message_id.0.into()]).await?.is_none() {
            continue;
        }
        if let (ScheduleChangeResult::Done, entry) = apply(sql, ids, key, change, None, now).await? {
            changes.push((key, entry));
        }
    }
    Ok(changes)
}

/// Applies a change to a message. `exempt_domain` matters only if the message is no longer scheduled: a scheduled entry
/// already says whether it counts.
async fn apply(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    change: ScheduleChange,
    exempt_domain: Option<&DomainName>,
    now: Timestamp,
) -> Result<(ScheduleChangeResult, EntryChange), StoreError> {
    const TOO_LATE: (ScheduleChangeResult, EntryChange) =
        (ScheduleChangeResult::TooLate, EntryChange::Unchanged);
    if lock_and_check_sending(sql, key).await? {
        return Ok(TOO_LATE);
    }
    let Some(state) = find(sql, key).await? else { return Ok(TOO_LATE) };
    if !matches!(state.status, Status::Scheduled | Status::Pending) {
        return Ok(TOO_LATE);
    }
    match change {
        ScheduleChange::Cancel => {
            let details = "The message was cancelled before it was sent";
            let (delivery, hold_expiry) = (NewDelivery::local(now, Status::Cancelled, details), None);
            let event = cancelled_event(&delivery);
            if !change_status(sql, ids, key, &state, &delivery, &event, hold_expiry).await? {
                return Ok(TOO_LATE);
            }
            remove_entry(sql, key).await?;
            Ok((ScheduleChangeResult::Done, EntryChange::Gone))
        }
        ScheduleChange::MoveTo(send_at) => move_to(sql, key, send_at, exempt_domain, now).await,
    }
}

/// Reschedules a message. A message that was already due has counted against limits: it is subtracted, and counts again
/// at its new time.
async fn move_to(
    sql: &Sql<'_>,
    key: Key,
    send_at: Timestamp,
    exempt_domain: Option<&DomainName>,
    now: Timestamp,
) -> Result<(ScheduleChangeResult, EntryChange), StoreError> {
    let (ServerId(server_id), MessageId(message_id)) = key;
    // A message counts when it is accepted or released, or when its scheduled time comes.
    let text = "SELECT q.expires_at, q.scheduled, q.domain, q.due_at, coalesce(q.released_at, s.created_at), m.send_at, s.options
                FROM queue q JOIN messages m ON m.server_id = q.server_id AND m.id = q.message_id
                JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
                WHERE q.server_id = $1 AND q.message_id = $2";
    let Some(entry) = sql.query_opt(text, &[server_id.into(), message_id.into()]).await? else {
        return Ok((ScheduleChangeResult::TooLate, EntryChange::Unchanged));
    };
    if let Some(expires_at) = entry.time_opt(0)?.filter(|expires_at| *expires_at <= send_at) {
        return Ok((ScheduleChangeResult::ExpiresBefore(expires_at), EntryChange::Unchanged));
    }
    let domain = entry.text(2)?;
    let scheduled = match entry.int(1)? {
        0 if exempt_domain.is_some_and(|exempt_domain| exempt_domain.as_str() == domain) => {
            SCHEDULED_UNCOUNTED
        }
        0 => {
            let options: SendOptions = entry.json(6)?;
            let was_scheduled = entry.time_opt(5)?.or(options.send_at).is_some();
            uncount(sql, key, entry.time(if was_scheduled { 3 } else { 4 })?).await?;
            SCHEDULED
        }
        scheduled => scheduled,
    };
    let text = if sql.is_sqlite() {
        "UPDATE queue SET due_at = $3, scheduled = $4 WHERE server_id = $1 AND message_id = $2"
    } else {
        "UPDATE queue SET due_at = $3, scheduled = $4, claimed_node = NULL, claimed_epoch = NULL
         WHERE server_id = $1 AND message_id = $2"
    };
    sql.execute(text, &[server_id.into(), message_id.into(), send_at.into(), scheduled.into()]).await?;
    let mut reschedules = list_reschedules(sql, key).await?;
    reschedules.push(Reschedule { at: now, send_at });
    reschedules.drain(..reschedules.len().saturating_sub(RESCHEDULES_MAX));
    let text =
        "UPDATE messages SET send_at = $3, status = $4, rescheduled = $5 WHERE server_id = $1 AND id = $2";
    let (status, reschedules) = (Status::Scheduled.as_str().into(), to_json(&reschedules).into());
    let params = [server_id.into(), message_id.into(), send_at.into(), status, reschedules];
    sql.execute(text, &params).await?;
    Ok((ScheduleChangeResult::Done, EntryChange::Queued(send_at)))
}

async fn list_reschedules(
    sql: &Sql<'_>,
    (server_id, message_id): Key,
) -> Result<Vec<Reschedule>, StoreError> {
    let text = "SELECT coalesce(rescheduled, '[]') FROM messages WHERE server_id = $1 AND id = $2";
    let row = sql.query_opt(text, &[server_id.0.into(), message_id.0.into()]).await?;
    row.map_or(Ok(Vec::new()), |row| row.json(0))
}
