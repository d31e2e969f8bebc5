//! Answer of send/message and send/raw: Message-ID, and one entry per recipient.

use crate::documented::ToSchema;
use postroad_app::send::{AcceptedMessage, SendAnswer};
use serde::{Serialize, Serializer};

use crate::envelope::{AnswerMemory, Flags, Success};
use crate::rate_limit::{RateLimit, add_warnings};

/// Send that is on stable storage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SendOut {
    /// Message-ID header without angle brackets, which all recipients share.
    #[schema(example = "2f4d3ad0-1c3e-4b8e-9a86-0d0f6a1a7c11@rp.mail.example.com")]
    message_id: String,
    /// One message per recipient, by the bare address as sent.
    #[serde(serialize_with = "as_map")]
    #[schema(value_type = std::collections::BTreeMap<String, MessageRefOut>)]
    messages: Vec<AcceptedMessage>,
}

/// Id and token of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageRefOut<'a> {
    /// Names the message in messages/message and messages/deliveries.
    #[schema(example = 5_123_456_789_012_345_i64)]
    id: i64,
    #[schema(example = "Xy3kQ9aPz0LmN4bT")]
    token: &'a str,
}

/// Serialises recipients in their order, unsorted.
pub(super) fn as_map<S: Serializer>(messages: &[AcceptedMessage], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        messages
            .iter()
            .map(|message| (&message.address, MessageRefOut { id: message.id.0, token: &message.token.0 })),
    )
}

impl From<SendAnswer> for Success<SendOut> {
    fn from(mut answer: SendAnswer) -> Self {
        add_warnings(&mut answer.warnings, &answer.limits);
        let flags = Flags {
            test_mode: answer.test_mode,
            idempotent_replay: answer.replayed,
            warnings: answer.warnings,
            rate_limit: RateLimit::tightest(&answer.limits),
            ..Flags::default()
        };
        Self {
            data: SendOut { message_id: answer.message_id, messages: answer.messages },
            flags,
            // The messages are stored: the sender must learn that.
            memory: AnswerMemory::Exempt,
        }
    }
}
