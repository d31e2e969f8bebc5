//! One waiting message in memory (about 130 bytes).

use std::sync::Arc;
use std::time::Duration;

use postroad_model::{DomainName, MessageId, PoolId, ServerId, SourceId, Timestamp};

use crate::prepare::LoadedMessage;

/// A claimed message that waits for its time or its turn.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) server_id: ServerId,
    pub(crate) message_id: MessageId,
    /// Due time as stored. The store identifies the entry by this time, so it must not be changed in memory.
    pub(crate) due_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) attempts: u32,
    /// The pool that the caller chose for the message.
    pub(crate) chosen_pool: Option<PoolId>,
    /// The source address that the next attempt uses again while it is healthy; `None` for any address.
    pub(crate) source: Option<SourceId>,
    pub(crate) greylisting: Option<Greylisting>,
    /// Whether the message was tried before it was last claimed: then its greylisting is in its delivery records.
    pub(crate) was_tried_before_claim: bool,
    /// When the message's wait is recorded as a delay again; `None` before the first record.
    pub(crate) delay_notice_at: Option<Timestamp>,
    /// Whether the message was aborted, because its host took long while connections were scarce. The next host then
    /// gets more time.
    pub(crate) was_aborted: bool,
    /// Whether the store has recorded that the message's attempt begins.
    pub(crate) is_begun: bool,
    /// Everything needed to send the message, if available: fresh from its acceptance, or already loaded.
    pub(crate) loaded_message: Option<Arc<LoadedMessage>>,
}

/// Greylisting of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Greylisting {
    pub(crate) first_refused_at: Timestamp,
    /// Time for which the message's retry was planned; `None` if anything else has delayed the retry since.
    pub(crate) retry_at: Option<Timestamp>,
}

impl Greylisting {
    /// The message was greylisted, perhaps not for the first time, and is tried again at `retry_at`.
    pub(crate) fn again(before: Option<Self>, retry_at: Timestamp, now: Timestamp) -> Self {
        Self {
            first_refused_at: before.map_or(now, |before| before.first_refused_at),
            retry_at: Some(retry_at),
        }
    }

    /// The retry was late, or ended without a reply of the receiver.
    pub(crate) fn delayed(self) -> Self {
        Self { retry_at: None, ..self }
    }

    /// The wait that was planned, or less if the message was tried earlier. Delays of our own prove nothing about the
    /// receiver.
    pub(super) fn planned_wait(self, now: Timestamp) -> Option<Duration> {
        Some(self.retry_at?.min(now).since(self.first_refused_at))
    }
}

impl Entry {
    pub(crate) fn key(&self) -> (ServerId, MessageId) {
        (self.server_id, self.message_id)
    }

    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// Messages for one recipient domain from one pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LaneKey {
    pub(crate) pool: PoolId,
    pub(crate) domain: DomainName,
    /// Whether the messages require TLS with a valid certificate.
    pub(crate) require_tls: bool,
}

/// Which messages are late.
#[derive(Debug, Clone, Copy)]
pub(super) struct LateBound {
    pub(super) now: Timestamp,
    /// Messages that were due before this are late, unless their wait was already recorded.
    due_before: Timestamp,
}

impl LateBound {
    /// Waits shorter than `after` are not reported.
    pub(super) fn new(after: Duration, now: Timestamp) -> Self {
        Self { now, due_before: now.minus(after) }
    }
}

impl Entry {
    pub(super) fn is_late(&self, bound: LateBound) -> bool {
        self.delay_notice_at.map_or(self.due_at <= bound.due_before, |at| at <= bound.now)
    }
}
