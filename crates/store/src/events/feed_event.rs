//! An event with its message, as the feed and webhooks show it.

use std::collections::BTreeMap;

use postroad_model::{Direction, EventId, EventKind, MessageId, MessageToken, ServerId, Timestamp};

use crate::error::StoreError;
use crate::sql::Row;

/// Number of `columns`; further columns of a row begin here.
pub(crate) const COLUMN_COUNT: usize = 19;

/// An event and its message, if the message still exists. Until the message is erased or removed, an event that is
/// delivered twice has the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEvent {
    pub server_id: ServerId,
    pub id: EventId,
    /// 0 for an event of the server.
    pub message_id: MessageId,
    /// 1, 2, 3 … per message, without a gap.
    pub seq: i64,
    pub at: Timestamp,
    pub test: bool,
    pub kind: EventKind,
    /// A JSON object, as in `NewEvent`.
    pub data: String,
    pub message: Option<EventMessage>,
}

/// Facts of a message that only an erasure changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventMessage {
    pub id: MessageId,
    pub token: MessageToken,
    pub rcpt_to: String,
    pub mail_from: String,
    /// The Message-ID header without its angle brackets.
    pub message_id: String,
    pub subject: String,
    pub tag: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub direction: Direction,
    pub size: u64,
    pub bounce: bool,
    pub accepted_at: Timestamp,
}

/// The columns that `read` reads, of `e` (events), `m` (messages) and `s` (sends).
macro_rules! columns {
    () => {
        "e.server_id, e.id, e.message_id, e.seq, e.kind, e.at, e.test, e.data, m.token, m.rcpt_to, s.mail_from,
         s.message_id, s.subject, s.tag, s.metadata, s.direction, s.size, s.bounce, s.created_at"
    };
}

/// Joins that find the columns of an event's message.
macro_rules! joins {
    () => {
        "LEFT JOIN messages m ON m.server_id = e.server_id AND m.id = e.message_id
         LEFT JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id"
    };
}
pub(crate) use {columns, joins};

/// Reads `columns`.
pub(crate) fn read(row: &Row) -> Result<FeedEvent, StoreError> {
    let message_id = MessageId(row.int(2)?);
    let message = match row.text_opt(8)? {
        None => None,
        Some(token) => Some(EventMessage {
            id: message_id,
            token: MessageToken(token),
            rcpt_to: row.text(9)?,
            mail_from: row.text(10)?,
            message_id: row.text(11)?,
            subject: row.text(12)?,
            tag: row.text_opt(13)?,
            metadata: row.json(14)?,
            direction: row.parsed(15, Direction::parse)?,
            size: row.int(16)? as u64,
            bounce: row.flag(17)?,
            accepted_at: row.time(18)?,
        }),
    };
    Ok(FeedEvent {
        server_id: ServerId(row.int(0)?),
        id: EventId(row.int(1)?),
        message_id,
        seq: row.int(3)?,
        at: row.time(5)?,
        test: row.flag(6)?,
        kind: row.parsed(4, EventKind::parse)?,
        data: row.text(7)?,
        message,
    })
}
