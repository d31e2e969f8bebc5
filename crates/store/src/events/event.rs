//! Types of events, and the list of the events of one message.

use std::borrow::Cow;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{EventId, EventKind, MessageId, ServerId, Timestamp};

use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    pub kind: EventKind,
    /// Details of the event, without the fields of its message: a JSON object.
    pub data: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: EventId,
    pub message_id: MessageId,
    /// 1, 2, 3 … per message, without a gap.
    pub seq: i64,
    pub at: Timestamp,
    pub test: bool,
    pub kind: EventKind,
    /// A JSON object, as in `NewEvent`.
    pub data: String,
}

/// A row of `events`. In each engine one function writes such rows. On SQLite the writer creates `id`, because the
/// order of ids is the order of the feed.
pub(crate) struct EventRow<'a> {
    pub(crate) server_id: ServerId,
    /// 0 for an event of the server.
    pub(crate) message_id: MessageId,
    pub(crate) id: EventId,
    pub(crate) seq: i64,
    pub(crate) kind: EventKind,
    pub(crate) at: Timestamp,
    pub(crate) test: bool,
    pub(crate) data: Cow<'a, str>,
}

#[boxed_futures]
impl Store {
    /// The events of a message, in the order of `seq`.
    pub async fn list_events(&self, server_id: ServerId, id: MessageId) -> Result<Vec<Event>> {
        self.read(move |sql| Box::pin(list_of_message(sql, server_id, id))).await
    }
}

pub(crate) async fn list_of_message(
    sql: &Sql<'_>,
    server_id: ServerId,
    message_id: MessageId,
) -> Result<Vec<Event>, StoreError> {
    let rows = sql
        .query(
            "SELECT id, seq, kind, at, test, data FROM events
             WHERE server_id = $1 AND message_id = $2 ORDER BY seq",
            &[server_id.0.into(), message_id.0.into()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Event {
                id: EventId(row.int(0)?),
                message_id,
                seq: row.int(1)?,
                at: row.time(3)?,
                test: row.flag(4)?,
                kind: row.parsed(2, EventKind::parse)?,
                data: row.text(5)?,
            })
        })
        .collect()
}
