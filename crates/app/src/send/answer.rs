//! The answer to an accepted send.

use postroad_model::{MessageId, MessageToken};
use serde::{Deserialize, Serialize};

use super::idempotency::Replayed;

/// The answer to an accepted send, and to every repetition of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendAnswer {
    /// The Message-ID header without angle brackets.
    pub message_id: String,
    pub messages: Vec<AcceptedMessage>,
    pub test_mode: bool,
    pub warnings: Vec<String>,
    /// Whether this is the answer to an earlier request with the same idempotency key.
    #[serde(skip)]
    pub replayed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedMessage {
    /// The bare address as it was sent.
    pub address: String,
    pub id: MessageId,
    pub token: MessageToken,
}

impl Replayed for SendAnswer {
    fn mark_replayed(&mut self) {
        self.replayed = true;
    }
}
