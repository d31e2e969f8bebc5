//! What is removed when it is old.

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

/// Where a removal goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemovalStage {
    Start,
    /// SQLite's bodies, which are of no server: after this one.
    Bodies {
        after: i64,
    },
    /// SQLite's bodies by their sends: of the server at this place of the cuts, after this one; `None` at its first.
    BodiesOf {
        server: usize,
        after: Option<i64>,
    },
    /// Row by row: the server at this place of the cuts, and no server's rows from this one on.
    Rows {
        server: usize,
        before_id: i64,
    },
    End,
}

/// A removal under way. What is still needed was left out when it began.
#[derive(Debug)]
pub struct Removal {
    pub(crate) which: OldRows,
    pub(crate) before_id: i64,
    /// Of every server, or of those it is about.
    pub(crate) cuts: Vec<Cut>,
    pub(crate) stage: RemovalStage,
}

/// One step of a removal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// On PostgreSQL most tables lose whole weeks at once: then these.
    pub rows: u64,
    /// There may be more to remove.
    pub has_more: bool,
}

/// Weeks of a table that were dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DroppedWeeks {
    pub(crate) dropped: u64,
    /// Some old weeks stay for somebody's sake; the last of them ends here.
    pub(crate) kept_before: Option<i64>,
}
