//! A stored message as it is read back.

use std::sync::Arc;

use postroad_model::{MessageId, MessageToken, Status, Timestamp};

use super::send::SendInfo;

/// The smallest answer about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSummary {
    pub id: MessageId,
    pub token: MessageToken,
}

/// A message with what it shares with the others of its send.
#[derive(Debug, Clone)]
pub struct Message {
    pub id: MessageId,
    pub token: MessageToken,
    pub rcpt_to: String,
    pub status: Status,
    pub hold_expiry: Option<Timestamp>,
    /// The message this one is a bounce of; 0 for none.
    pub bounce_for_id: i64,
    pub last_delivery_at: Option<Timestamp>,
    /// When the next attempt is due, if the message is queued.
    pub next_attempt_at: Option<Timestamp>,
    pub send: Arc<SendInfo>,
}
