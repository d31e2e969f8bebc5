//! Tables that lose their oldest rows, and where they are cut.

use postroad_model::ServerId;

/// Rows that go by their time-ordered ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OldRows {
    Bodies,
    Transcripts,
    Deliveries,
    /// By their own ids. Those that are not counted yet, or that a webhook waits for, stay.
    Events,
    /// By the ids of their messages; likewise.
    EventsOfMessages,
    /// Those that have events stay.
    Messages,
    Sends,
    WebhookAttempts,
}

/// The first row of a server that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) server_id: ServerId,
    pub(crate) before_id: i64,
}
