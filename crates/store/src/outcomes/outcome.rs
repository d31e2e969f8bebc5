//! The outcome of a queued message.

use std::sync::Arc;

use postroad_model::{MessageId, ServerId, SourceId, Timestamp};

use super::deliveries::NewDelivery;
use crate::events::NewEvent;
use crate::suppressions::NewSuppression;

/// Result of a queued message, usually one that this node claimed. `delivery.status` is the message's new status. A
/// `SoftFail` returns to the queue for `delivery.next_attempt_at`, or at once if there is none.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub server_id: ServerId,
    pub message_id: MessageId,
    /// The due time under which the message was claimed. It identifies the attempt: an outcome is recorded only while
    /// the entry (PostgreSQL) or the claim (SQLite) still has this time. So an outcome whose commit was not confirmed
    /// is not recorded twice. `None` matches any time.
    pub claimed_due_at: Option<Timestamp>,
    /// Whether the outcome counts as an attempt: a remote host was tried.
    pub counts_as_attempt: bool,
    /// When the hold ends, if the outcome holds the message.
    pub hold_expiry: Option<Timestamp>,
    /// A `SoftFail` that this node keeps claimed, because the next attempt is already in its schedule.
    pub keep_claim: bool,
    /// Suppression of the recipient's address, if the outcome requires one.
    pub suppress: Option<NewSuppression>,
    /// The SMTP conversation.
    pub transcript: Option<String>,
    /// The source address; `Sent` and `HardFail` are counted for it.
    pub source_id: Option<SourceId>,
    /// The receiver group, by which warm-ups count: a provider with its own rules, or `OTHER_PROVIDER`.
    pub provider: Arc<str>,
    /// The source address that the next attempt should use again.
    pub retry_source_id: Option<SourceId>,
    pub delivery: NewDelivery,
    pub event: NewEvent,
}

impl Outcome {
    pub fn key(&self) -> (ServerId, MessageId) {
        (self.server_id, self.message_id)
    }

    /// Time of the next attempt of a message that stays queued.
    pub(crate) fn due_at(&self) -> Timestamp {
        self.delivery.next_attempt_at.unwrap_or(self.delivery.at)
    }

    /// Compares the outcome with the due time of the queue entry or of the claim.
    pub(crate) fn match_attempt(&self, due_at: Timestamp) -> AttemptMatch {
        match self.claimed_due_at {
            Some(claimed_due_at) if claimed_due_at != due_at => {
                let stays_queued = self.delivery.status.is_queued();
                if stays_queued && self.due_at() == due_at {
                    AttemptMatch::Recorded
                } else {
                    AttemptMatch::Other
                }
            }
            _ => AttemptMatch::Same,
        }
    }
}

/// Relation of an outcome to the attempt that a queue entry or a claim waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptMatch {
    /// The entry or claim waits for this outcome.
    Same,
    /// This outcome is recorded already, by a commit whose result was lost.
    Recorded,
    /// The entry or claim belongs to another attempt.
    Other,
}
