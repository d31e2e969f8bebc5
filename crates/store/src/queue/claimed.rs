//! A claimed queue entry.

use postroad_model::{DomainName, MessageId, PoolId, ServerId, SourceId, Timestamp};

/// A queue entry handed to this node: nobody else gets it until it is finished, released or the node is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    pub server_id: ServerId,
    pub message_id: MessageId,
    pub domain: DomainName,
    pub due_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub attempts: u32,
    /// The pool its sender asked for.
    pub pool_id: Option<PoolId>,
    /// The source address of its last attempt, which the next one should keep.
    pub source_id: Option<SourceId>,
}

impl Claimed {
    pub fn key(&self) -> (ServerId, MessageId) {
        (self.server_id, self.message_id)
    }
}
