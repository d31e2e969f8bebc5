//! A claimed queue entry, and the entries that a claim leaves out.

use postroad_model::{DomainName, MessageId, PoolId, ServerId, SourceId, Timestamp};

/// A queue entry claimed by this node. No other node gets the entry until the claim ends: its message is finished,
/// released or changed (by a retry, for example), or this node is dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedEntry {
    pub server_id: ServerId,
    pub message_id: MessageId,
    pub domain: DomainName,
    pub due_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub attempts: u32,
    /// The pool that the caller chose for the message.
    pub pool_id: Option<PoolId>,
    /// The source of the last attempt. The next attempt should use the same source.
    pub source_id: Option<SourceId>,
}

/// Entries that a claim leaves out.
#[derive(Debug, Clone, Default)]
pub struct ClaimSkips {
    /// Domains for which the caller takes no more entries. The SQLite engine ignores this list.
    pub domains: Vec<DomainName>,
    pub servers: Vec<ServerId>,
}

impl ClaimedEntry {
    pub fn key(&self) -> (ServerId, MessageId) {
        (self.server_id, self.message_id)
    }
}
