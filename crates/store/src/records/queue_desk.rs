//! The queue as an operator sees it, and what retrying and cancelling came to.

use postroad_model::{DomainName, MessageId, ServerId, Status, SuppressionReason, Timestamp};

/// Which entries to list; `None` for all.
#[derive(Debug, Clone, Default)]
pub struct QueueFilter {
    pub server_id: Option<ServerId>,
    /// The recipient's domain.
    pub domain: Option<DomainName>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueEntry {
    /// A node has it in its schedule.
    pub claimed: bool,
    pub message_id: MessageId,
    pub server_id: ServerId,
    pub server_name: String,
    pub domain: DomainName,
    pub rcpt_to: String,
    pub status: Status,
    pub due_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub attempts: u32,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStats {
    pub total: u64,
    /// Due now or overdue.
    pub due: u64,
    /// Due later: scheduled, or waiting for the next attempt.
    pub scheduled: u64,
    pub oldest_due_at: Option<Timestamp>,
    /// The largest twenty.
    pub by_domain: Vec<(DomainName, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retried {
    /// It was queued and is due now.
    Now,
    /// It was held and is queued again.
    Released,
    /// Nothing was changed: its recipient is suppressed, so that it would be held again.
    Suppressed { reason: SuppressionReason, since: Timestamp },
    /// It is on the wire at this moment.
    TooLate,
    /// It is neither queued nor held, or unknown.
    NotWaiting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// With the status it has now.
    Done(Status),
    /// It is on the wire at this moment.
    TooLate,
    /// It is neither queued nor held, or unknown.
    NotWaiting,
}
