//! The answer to an accepted send.

use postroad_model::{MessageId, MessageToken};
use postroad_store::{LimitOwner, LimitUse};
use serde::{Deserialize, Serialize};

use super::idempotency::ReplayableAnswer;

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
    /// The limits against which the messages counted.
    #[serde(skip)]
    pub limits: Vec<LimitUse>,
}

/// A warning for the sender when nine tenths of a limit are used.
pub fn limit_warning(limit_use: &LimitUse) -> Option<String> {
    let owner = match limit_use.owner {
        LimitOwner::Server => "server",
        LimitOwner::Account => "account",
    };
    let (limit, period) = (limit_use.limit, limit_use.period.with_article());
    if limit_use.remaining() == 0 {
        return Some(format!(
            "The {owner}'s limit of {limit} messages {period} is reached: further messages are held"
        ));
    }
    let count = limit_use.used;
    limit_use.is_nearly_full().then(|| format!("{count} of the {owner}'s {limit} messages {period} are used"))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedMessage {
    /// The address without a name, spelled as in the request.
    pub address: String,
    pub id: MessageId,
    pub token: MessageToken,
}

impl ReplayableAnswer for SendAnswer {
    fn mark_replayed(&mut self) {
        self.replayed = true;
    }
}
