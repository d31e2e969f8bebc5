//! Tables from which old rows are removed, and the ids at which a removal stops.

use postroad_model::ServerId;

/// Rows removed by their time-ordered ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OldRows {
    Bodies,
    Transcripts,
    Deliveries,
    /// Events, by their own ids. Events that are not counted yet, or that a webhook waits for, stay.
    Events,
    /// Events, by the ids of their messages. Events that are not counted yet, or that a webhook waits for, stay.
    EventsOfMessages,
    /// Messages that have events stay.
    Messages,
    Sends,
    WebhookAttempts,
}

/// Bound of a removal at one server: rows with ids below `before_id` are removed, later rows stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemovalBound {
    pub(crate) server_id: ServerId,
    pub(crate) before_id: i64,
}
