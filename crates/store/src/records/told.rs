//! Events as they are told: with what a reader wants to know of their message.

use std::collections::BTreeMap;

use postroad_model::{
    Direction, EventCursor, EventKind, EventSet, MessageId, MessageToken, ServerId, Timestamp,
};

use super::delivery::Event;

/// An event and its message, if it is about one that still exists. Nothing in it ever changes, so that whoever is told
/// twice is told the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldEvent {
    pub server_id: ServerId,
    pub event: Event,
    pub message: Option<EventMessage>,
}

impl ToldEvent {
    pub fn kind(&self) -> EventKind {
        self.event.event.kind
    }
}

/// What never changes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventMessage {
    pub id: MessageId,
    pub token: MessageToken,
    pub rcpt_to: String,
    pub mail_from: String,
    /// The Message-ID header without its angle brackets.
    pub message_id: String,
    pub subject: String,
    pub tag: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub direction: Direction,
    pub size: u64,
    pub bounce: bool,
    pub accepted_at: Timestamp,
}

/// What to read of a server's stream of events.
#[derive(Debug, Clone, Copy)]
pub struct FeedQuery {
    pub server_id: ServerId,
    pub after: EventCursor,
    pub kinds: EventSet,
    /// Only those of one message.
    pub message_id: Option<MessageId>,
    /// How many events are looked at; fewer may be wanted.
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedPage {
    pub events: Vec<ToldEvent>,
    /// Where to go on.
    pub next: EventCursor,
    /// Whether there may be more by now.
    pub has_more: bool,
}
