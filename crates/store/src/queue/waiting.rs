//! Changes of a waiting message: its state, its queue entry, and the record and event of the change.

use postroad_model::{DeliveryId, EventId, IdGenerator, MessageId, ServerId, Status, Timestamp};

use crate::error::StoreError;
use crate::events::event::EventRow;
use crate::events::{NewEvent, append};
use crate::outcomes::NewDelivery;
use crate::outcomes::append::append_delivery;
use crate::outcomes::deliveries::DeliveryRow;
use crate::sql::Sql;

/// Key of a message, and of its queue entry.
pub(crate) type Key = (ServerId, MessageId);

/// Effect of a change on the message's queue entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryChange {
    Unchanged,
    Gone,
    /// The message is queued, unclaimed, and due at this time.
    Queued(Timestamp),
}

/// State of a message, before a change.
pub(crate) struct MessageState {
    pub(crate) status: Status,
    pub(crate) last_seq: i64,
    pub(crate) test: bool,
}

/// On PostgreSQL, locks the queue entry and the message as `finish` does, and returns whether the message is being
/// sent. On SQLite returns `false`: only the claims in memory know this, and the writer checks them before the change.
pub(crate) async fn lock_and_check_sending(
    sql: &Sql<'_>,
    (server_id, message_id): Key,
) -> Result<bool, StoreError> {
    if sql.is_sqlite() {
        return Ok(false);
    }
    let params = [server_id.0.into(), message_id.0.into()];
    let text = "SELECT begun_at FROM queue WHERE server_id = $1 AND message_id = $2 FOR UPDATE";
    let entry = sql.query_opt(text, &params).await?;
    sql.query("SELECT id FROM messages WHERE server_id = $1 AND id = $2 FOR UPDATE", &params).await?;
    Ok(entry.is_some_and(|row| !matches!(row.int_opt(0), Ok(None))))
}

pub(crate) async fn find(
    sql: &Sql<'_>,
    (server_id, message_id): Key,
) -> Result<Option<MessageState>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT m.status, m.last_seq, s.test FROM messages m
             JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
             WHERE m.server_id = $1 AND m.id = $2",
            &[server_id.0.into(), message_id.0.into()],
        )
        .await?;
    row.map(|row| {
        Ok(MessageState { status: row.parsed(0, Status::parse)?, last_seq: row.int(1)?, test: row.flag(2)? })
    })
    .transpose()
}

/// Gives a message a new status, with a delivery record and an event. `false` if the message cannot get this status, or
/// if somebody else changed the message first: then nothing is written.
pub(crate) async fn change_status(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    state: &MessageState,
    delivery: &NewDelivery,
    event: &NewEvent,
    hold_expiry: Option<Timestamp>,
) -> Result<bool, StoreError> {
    let (server_id, message_id) = key;
    if !state.status.can_become(delivery.status) {
        return Ok(false);
    }
    // The condition on the old `last_seq` is the fence: if two nodes try, only one changes the row.
    let changed = sql
        .execute(
            "UPDATE messages SET status = $4, last_seq = $5, last_delivery_at = $6, hold_expiry = $7
             WHERE server_id = $1 AND id = $2 AND last_seq = $3",
            &[
                server_id.0.into(),
                message_id.0.into(),
                state.last_seq.into(),
                delivery.status.as_str().into(),
                (state.last_seq + 1).into(),
                delivery.at.into(),
                hold_expiry.into(),
            ],
        )
        .await?;
    if changed == 0 {
        return Ok(false);
    }
    append_delivery(sql, DeliveryRow::of(server_id, message_id, DeliveryId(ids.next()), delivery)).await?;
    add_event(sql, ids, key, state, event, delivery.at).await?;
    Ok(true)
}

pub(crate) async fn remove_entry(sql: &Sql<'_>, (server_id, message_id): Key) -> Result<(), StoreError> {
    let text = "DELETE FROM queue WHERE server_id = $1 AND message_id = $2";
    sql.execute(text, &[server_id.0.into(), message_id.0.into()]).await?;
    Ok(())
}

pub(crate) async fn add_event(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    (server_id, message_id): Key,
    state: &MessageState,
    event: &NewEvent,
    at: Timestamp,
) -> Result<(), StoreError> {
    let (id, seq) = (EventId(ids.next()), state.last_seq + 1);
    let (kind, test, data) = (event.kind, state.test, event.data.as_str().into());
    append::append(sql, EventRow { server_id, message_id, id, seq, kind, at, test, data }).await
}
