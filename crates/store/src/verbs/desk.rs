//! What an operator does with waiting messages: retry, cancel; and what time does with held ones.

use postroad_model::{
    DeliveryId, EmailAddress, EventId, EventKind, IdGenerator, MessageId, ServerId, Status, Timestamp,
};
use serde_json::json;

use crate::error::StoreError;
use crate::events::{NewEvent, append};
use crate::initial::SCHEDULED;
use crate::messages::{Message, message};
use crate::outcomes::{NewDelivery, deliveries};
use crate::records::{Cancelled, Retried};
use crate::sql::Sql;
use crate::suppressions::lookup;

pub(crate) type Key = (ServerId, MessageId);

/// What a change means for the message's queue entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// As it was.
    Unchanged,
    Gone,
    /// It is there, unclaimed.
    Queued(Timestamp),
}

/// Where a message stands.
struct Standing {
    status: Status,
    last_seq: i64,
    test: bool,
}

pub(crate) async fn cancel(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    now: Timestamp,
) -> Result<(Cancelled, Entry), StoreError> {
    if lock_entry(sql, key).await? {
        return Ok((Cancelled::TooLate, Entry::Unchanged));
    }
    let Some(standing) = find(sql, key).await? else { return Ok((Cancelled::NotWaiting, Entry::Unchanged)) };
    let (status, details) = match standing.status {
        Status::Held => (Status::HoldCancelled, "The held message was cancelled"),
        _ => (Status::Cancelled, "The message was cancelled before it was sent"),
    };
    let new = NewDelivery::local(now, status, details);
    if !settle(sql, ids, key, &standing, &new, &cancelled(&new), None).await? {
        return Ok((Cancelled::NotWaiting, Entry::Unchanged));
    }
    remove_entry(sql, key).await?;
    Ok((Cancelled::Done(status), Entry::Gone))
}

pub(crate) async fn retry(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    now: Timestamp,
) -> Result<(Retried, Entry), StoreError> {
    if lock_entry(sql, key).await? {
        return Ok((Retried::TooLate, Entry::Unchanged));
    }
    let Some(standing) = find(sql, key).await? else { return Ok((Retried::NotWaiting, Entry::Unchanged)) };
    let is_held = standing.status == Status::Held;
    if !is_held && !standing.status.is_queued() {
        return Ok((Retried::NotWaiting, Entry::Unchanged));
    }
    let message = message::find(sql, key.0, key.1).await?.ok_or(StoreError::NotFound)?;
    if let Some(found) = lookup::find(sql, key.0, message.rcpt_to.clone(), now).await? {
        let suppressed = Retried::Suppressed { reason: found.reason, since: found.created_at };
        return Ok((suppressed, Entry::Unchanged));
    }
    if is_held {
        let due_at = release_hold(sql, ids, key, &message, &standing, now).await?;
        return Ok(match due_at {
            Some(due_at) => (Retried::Released, Entry::Queued(due_at)),
            None => (Retried::NotWaiting, Entry::Unchanged),
        });
    }
    // Whoever has claimed it for its old time is told that it is gone.
    let text = if sql.is_sqlite() {
        "UPDATE queue SET due_at = $3 WHERE server_id = $1 AND message_id = $2"
    } else {
        "UPDATE queue SET due_at = $3, claimed_node = NULL, claimed_epoch = NULL
         WHERE server_id = $1 AND message_id = $2"
    };
    match sql.execute(text, &[key.0.0.into(), key.1.0.into(), now.into()]).await? {
        0 => Ok((Retried::NotWaiting, Entry::Unchanged)),
        _ => Ok((Retried::Now, Entry::Queued(now))),
    }
}

/// Puts a held message into the queue; returns when it is due, or `None` if somebody was faster.
async fn release_hold(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    message: &Message,
    standing: &Standing,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let address = EmailAddress::parse(&message.rcpt_to)
        .map_err(|e| StoreError::Internal(format!("message {} is held for no address: {e}", key.1)))?;
    let options = &message.send.options;
    let due_at = options.send_at.map_or(now, |at| at.max(now));
    let is_scheduled = due_at > now;
    let status = if is_scheduled { Status::Scheduled } else { Status::Pending };
    let changed = sql
        .execute(
            "UPDATE messages SET status = $4, last_seq = $5, hold_expiry = NULL
             WHERE server_id = $1 AND id = $2 AND last_seq = $3",
            &[
                key.0.0.into(),
                key.1.0.into(),
                standing.last_seq.into(),
                status.as_str().into(),
                (standing.last_seq + 1).into(),
            ],
        )
        .await?;
    if changed == 0 {
        return Ok(None);
    }
    let released = NewEvent { kind: EventKind::Released, data: json!({ "status": status }).to_string() };
    add_event(sql, ids, key, standing, &released, now).await?;
    sql.execute(
        "INSERT INTO queue (server_id, message_id, domain, due_at, expires_at, attempts, pool_id, scheduled)
         VALUES ($1, $2, $3, $4, $5, 0, $6, $7)",
        &[
            key.0.0.into(),
            key.1.0.into(),
            address.domain().as_str().into(),
            due_at.into(),
            options.expires_at.into(),
            options.pool_id.map(|id| id.0).into(),
            if is_scheduled { SCHEDULED } else { 0 }.into(),
        ],
    )
    .await?;
    Ok(Some(due_at))
}

pub(crate) async fn has_expired_holds(sql: &Sql<'_>, now: Timestamp) -> Result<bool, StoreError> {
    let text = "SELECT id FROM messages WHERE hold_expiry <= $1 LIMIT 1";
    Ok(sql.query_opt(text, &[now.into()]).await?.is_some())
}

/// Ends holds whose time is over, at most `limit`; returns how many were looked at.
pub(crate) async fn expire_holds(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    now: Timestamp,
    limit: i64,
) -> Result<u64, StoreError> {
    let over = sql
        .query(
            "SELECT server_id, id FROM messages WHERE hold_expiry <= $1 ORDER BY hold_expiry, server_id, id LIMIT $2",
            &[now.into(), limit.into()],
        )
        .await?;
    for row in &over {
        let key = (ServerId(row.int(0)?), MessageId(row.int(1)?));
        if let Some(standing) = find(sql, key).await?.filter(|standing| standing.status == Status::Held) {
            let details = "The hold ended without a release";
            let new = NewDelivery::local(now, Status::HoldCancelled, details);
            settle(sql, ids, key, &standing, &new, &cancelled(&new), None).await?;
        }
    }
    Ok(over.len() as u64)
}

/// On PostgreSQL, locks the message as `finish` does. Whether it is on the wire; SQLite knows that in memory.
pub(super) async fn lock_entry(sql: &Sql<'_>, key: Key) -> Result<bool, StoreError> {
    if sql.is_sqlite() {
        return Ok(false);
    }
    let params = [key.0.0.into(), key.1.0.into()];
    let entry = "SELECT begun_at FROM queue WHERE server_id = $1 AND message_id = $2 FOR UPDATE";
    let entry = sql.query_opt(entry, &params).await?;
    sql.query("SELECT id FROM messages WHERE server_id = $1 AND id = $2 FOR UPDATE", &params).await?;
    Ok(entry.is_some_and(|row| !matches!(row.int_opt(0), Ok(None))))
}

pub(crate) async fn find(sql: &Sql<'_>, key: Key) -> Result<Option<Standing>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT m.status, m.last_seq, s.test FROM messages m
             JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
             WHERE m.server_id = $1 AND m.id = $2",
            &[key.0.0.into(), key.1.0.into()],
        )
        .await?;
    row.map(|row| {
        Ok(Standing { status: row.name(0, Status::parse)?, last_seq: row.int(1)?, test: row.flag(2)? })
    })
    .transpose()
}

/// The event of a message that was cancelled.
fn cancelled(new: &NewDelivery) -> NewEvent {
    let data = json!({ "status": new.status, "details": new.details }).to_string();
    NewEvent { kind: EventKind::Cancelled, data }
}

/// Gives a message a new status, with the delivery record and the event that tell of it. `false` if it cannot take
/// it, or somebody was faster: then nothing is written.
pub(crate) async fn settle(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    standing: &Standing,
    new: &NewDelivery,
    event: &NewEvent,
    hold_expiry: Option<Timestamp>,
) -> Result<bool, StoreError> {
    if !standing.status.can_become(new.status) {
        return Ok(false);
    }
    // The old seq in the condition makes this the fence: of two nodes, one changes the row.
    let changed = sql
        .execute(
            "UPDATE messages SET status = $4, last_seq = $5, last_delivery_at = $6, hold_expiry = $7
             WHERE server_id = $1 AND id = $2 AND last_seq = $3",
            &[
                key.0.0.into(),
                key.1.0.into(),
                standing.last_seq.into(),
                new.status.as_str().into(),
                (standing.last_seq + 1).into(),
                new.at.into(),
                hold_expiry.into(),
            ],
        )
        .await?;
    if changed == 0 {
        return Ok(false);
    }
    deliveries::add(sql, key.0, key.1, DeliveryId(ids.next()), new).await?;
    add_event(sql, ids, key, standing, event, new.at).await?;
    Ok(true)
}

/// Holds a queued message. `false` if it cannot be held any more: then nothing is written.
pub(super) async fn hold(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    new: &NewDelivery,
    event: &NewEvent,
    expiry: Timestamp,
) -> Result<bool, StoreError> {
    let Some(standing) = find(sql, key).await? else { return Ok(false) };
    let is_held = settle(sql, ids, key, &standing, new, event, Some(expiry)).await?;
    if is_held {
        remove_entry(sql, key).await?;
    }
    Ok(is_held)
}

pub(crate) async fn remove_entry(sql: &Sql<'_>, key: Key) -> Result<(), StoreError> {
    let text = "DELETE FROM queue WHERE server_id = $1 AND message_id = $2";
    sql.execute(text, &[key.0.0.into(), key.1.0.into()]).await?;
    Ok(())
}

async fn add_event(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    (server_id, message_id): Key,
    standing: &Standing,
    event: &NewEvent,
    at: Timestamp,
) -> Result<(), StoreError> {
    let (id, seq) = (EventId(ids.next()), standing.last_seq + 1);
    let place = append::EventPlace { server_id, message_id, id, seq, at, test: standing.test };
    append::add(sql, place, event).await
}
