//! A returned message and its effect.

use postroad_model::{MessageId, MessageToken};

use crate::accept::SendInfo;
use crate::events::NewEvent;
use crate::messages::StoredBody;
use crate::outcomes::NewDelivery;
use crate::suppressions::NewSuppression;

/// Returned mail about a message of the same server, with the ids under which the returned mail is stored.
#[derive(Debug)]
pub struct NewReturn {
    /// Data of the mail that came back.
    pub info: SendInfo,
    pub body: StoredBody,
    pub id: MessageId,
    pub token: MessageToken,
    /// The address at which the mail arrived: the message's return path, or an address for feedback loops.
    pub rcpt_to: String,
    /// The message that the mail is about.
    pub about: MessageId,
    /// `None` if the mail changes nothing.
    pub effect: Option<ReturnEffect>,
}

/// Effect of returned mail on the message it is about; applied only if the effect is new.
#[derive(Debug, Clone)]
pub struct ReturnEffect {
    /// For a bounce: its delivery record, which has the message's new status. A complaint does not change the status.
    pub delivery: Option<NewDelivery>,
    /// Written once: a message bounces only once, and is complained about only once.
    pub event: NewEvent,
    pub suppress: Option<NewSuppression>,
    /// Whether the bounce or complaint counts for the source address of the message.
    pub counts_for_source: bool,
}

/// Result of `take_return`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReturnResult {
    /// Whether the mail was stored; false for a repetition, and if too many are stored for its message.
    pub is_stored: bool,
    /// Whether the effect was new, so that it was applied.
    pub has_effect: bool,
}
