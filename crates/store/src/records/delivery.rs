//! Attempts, their outcomes, and the events that tell of them.

use postroad_model::{DomainName, MessageId, PoolId, ServerId, SourceId, Timestamp};

use crate::messages::Message;
use crate::suppressions::Suppression;

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
