//! A returned message and its effect.

use postroad_model::{MessageId, MessageToken};

use crate::accept::SendInfo;
use crate::events::NewEvent;
use crate::messages::StoredBody;
use crate::outcomes::NewDelivery;
use crate::suppressions::NewSuppression;

/// A bounce or a report, with all its ids, about a message of the same server.
#[derive(Debug)]
pub struct NewReturn {
    /// Of the mail that came back.
    pub info: SendInfo,
    pub body: StoredBody,
    pub id: MessageId,
    pub token: MessageToken,
    /// The return path it came to.
    pub rcpt_to: String,
    /// The message it is about.
    pub about: MessageId,
    /// `None` for what changes nothing.
    pub effect: Option<ReturnEffect>,
}

/// Effect on the message it is about, if that can still take it.
#[derive(Debug, Clone)]
pub struct ReturnEffect {
    /// For a bounce: its record, whose status is the message's new one. A complaint leaves the status alone.
    pub delivery: Option<NewDelivery>,
    /// Told once: a message complains, and bounces, one time only.
    pub event: NewEvent,
    pub suppress: Option<NewSuppression>,
    /// Whether it counts for the address of ours that the message was sent from.
    pub counts_for_source: bool,
}

/// Result of `take_return`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// False for a repetition, and when the message has enough of them already.
    pub is_stored: bool,
    /// The effect was new.
    pub has_effect: bool,
}
