//! What is removed when it is old.

/// Rows that go by their time-ordered ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OldRows {
    Bodies,
    Transcripts,
    Deliveries,
    /// By their own ids. Those that are not counted yet stay.
    Events,
    /// By the ids of their messages; likewise.
    EventsOfMessages,
    Messages,
    Sends,
    WebhookAttempts,
}

/// One step of a removal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// On PostgreSQL most tables lose whole weeks at once: then these.
    pub rows: u64,
    /// There is more to remove.
    pub has_more: bool,
}
