//! Attempts, their outcomes, and the events that tell of them.

use std::sync::Arc;

use postroad_model::{DeliveryId, DomainName, MessageId, PoolId, ServerId, SourceId, Status, Timestamp};

use crate::events::NewEvent;
use crate::messages::Message;
use crate::suppressions::{NewSuppression, Suppression};

/// One attempt (or hold, or later bounce) as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub record: NewDelivery,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    pub at: Timestamp,
    pub status: Status,
    /// Our sentence.
    pub details: String,
    /// The remote server's words.
    pub output: String,
    pub sent_with_ssl: bool,
    pub log_id: String,
    pub duration_us: Option<i64>,
    pub mx: Option<String>,
    pub remote_ip: Option<String>,
    pub source_ip: Option<String>,
    pub tls: Option<String>,
    pub code: Option<i64>,
    pub enhanced_code: Option<String>,
    pub bounce_class: Option<String>,
    pub next_attempt_at: Option<Timestamp>,
    /// An earlier attempt may have arrived: its reply was lost.
    pub possible_duplicate: bool,
}

impl NewDelivery {
    /// A record of something that did not touch the network.
    pub fn local(at: Timestamp, status: Status, details: impl Into<String>) -> Self {
        Self {
            at,
            status,
            details: details.into(),
            output: String::new(),
            sent_with_ssl: false,
            log_id: String::new(),
            duration_us: None,
            mx: None,
            remote_ip: None,
            source_ip: None,
            tls: None,
            code: None,
            enhanced_code: None,
            bounce_class: None,
            next_attempt_at: None,
            possible_duplicate: false,
        }
    }
}

/// A queue entry handed to this node: nobody else gets it until it is finished, released or the node is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    pub server_id: ServerId,
    pub message_id: MessageId,
    pub domain: DomainName,
    pub due_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub attempts: u32,
    /// The pool its sender wished for.
    pub pool_id: Option<PoolId>,
    /// The source address of its last attempt, which the next one should keep.
    pub source_id: Option<SourceId>,
}

impl Claimed {
    pub fn key(&self) -> (ServerId, MessageId) {
        (self.server_id, self.message_id)
    }
}

/// A claimed message that is about to go on the wire.
#[derive(Debug, Clone)]
pub struct Begin {
    pub server_id: ServerId,
    pub message_id: MessageId,
    /// As it was claimed: another one means that it was retried meanwhile.
    pub due_at: Timestamp,
    /// False for a fresh message, of which the caller has everything.
    pub needs_message: bool,
}

/// Whether it may.
#[derive(Debug)]
pub enum Begun {
    /// With the message, if it was needed.
    Go(Option<Box<Message>>),
    /// The recipient was suppressed since: to be finished as held.
    Suppressed(Box<Message>, Suppression),
    /// The claim is no longer ours: cancelled, retried, reaped, or begun already.
    Gone,
}

/// What became of a claimed message. `delivery.status` is the message's new status; a `SoftFail` goes back into the
/// queue for `delivery.next_attempt_at`, or at once if it has none.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub server_id: ServerId,
    pub message_id: MessageId,
    /// The due time under which the message was claimed. It names the attempt: an outcome is recorded only while the
    /// entry still has this time, so that one whose commit was not confirmed is not recorded twice. `None` matches any.
    pub claimed_for: Option<Timestamp>,
    /// Attempts count only when a remote host was tried.
    pub counts_as_attempt: bool,
    /// When a hold ends; for outcomes that hold the message.
    pub hold_expiry: Option<Timestamp>,
    /// A `SoftFail` that stays claimed by this node, because it keeps the next attempt in its own schedule.
    pub keep_claim: bool,
    /// What the outcome says of the recipient's address for later sends.
    pub suppress: Option<NewSuppression>,
    /// The SMTP conversation.
    pub transcript: Option<String>,
    /// The address of ours it was sent from; `Sent` and `HardFail` are counted for it.
    pub source_id: Option<SourceId>,
    /// The group of receivers it went to, by which warm-ups count: a provider with rules of its own, or `OTHER_PROVIDER`.
    pub provider: Arc<str>,
    /// The source address that the next attempt should keep.
    pub retry_source_id: Option<SourceId>,
    pub delivery: NewDelivery,
    pub event: NewEvent,
}

impl Outcome {
    pub fn key(&self) -> (ServerId, MessageId) {
        (self.server_id, self.message_id)
    }

    /// When a message that stays queued is tried again.
    pub(crate) fn due_at(&self) -> Timestamp {
        self.delivery.next_attempt_at.unwrap_or(self.delivery.at)
    }

    /// Compares the outcome with its queue entry, which is due at `due_at` and claimed by this node.
    pub(crate) fn relation_to(&self, due_at: Timestamp) -> AttemptMatch {
        match self.claimed_for {
            Some(claimed_for) if claimed_for != due_at => {
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

/// How an outcome relates to the queue entry it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptMatch {
    /// The entry waits for this outcome.
    Same,
    /// An earlier commit of this outcome stands, though its answer was lost.
    Recorded,
    /// The entry is at another attempt.
    Other,
}
