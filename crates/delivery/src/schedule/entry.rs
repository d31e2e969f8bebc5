//! One waiting message in memory: a few dozen bytes.

use std::sync::Arc;

use postroad_model::{DomainName, MessageId, PoolId, ServerId, SourceId, Timestamp};

use crate::prepare::Work;

/// A claimed message that waits for its time or its turn.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) server_id: ServerId,
    pub(crate) message_id: MessageId,
    /// Also identifies the claim: the store finds the entry by it.
    pub(crate) due_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) attempts: u32,
    /// The pool that its sender chose.
    pub(crate) chosen_pool: Option<PoolId>,
    /// The source address of its last attempt: the next one uses it again while it is healthy.
    pub(crate) source: Option<SourceId>,
    /// When it was first greylisted, as far as this process knows.
    pub(crate) greylisted_at: Option<Timestamp>,
    /// Next time its wait is reported; `None` before the first.
    pub(crate) announce_at: Option<Timestamp>,
    /// It had to make way once, because its host took long while connections were short. It is not hurried again.
    pub(crate) was_hurried: bool,
    /// The store has recorded that its attempt begins.
    pub(crate) begun: bool,
    /// Everything needed to send it, if available: fresh from its acceptance, or already loaded.
    pub(crate) work: Option<Arc<Work>>,
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
    /// The sender requires TLS with a valid certificate.
    pub(crate) require_tls: bool,
}
