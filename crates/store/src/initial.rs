//! What the first state of a message means for its rows; the same on both engines.

use postroad_model::{EventKind, Status, Timestamp};

use crate::records::{InitialState, NewSend};

pub(crate) struct InitialRow<'a> {
    pub(crate) status: Status,
    /// When its queue entry is due; `None` for no queue entry.
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) hold_expiry: Option<Timestamp>,
    /// The delivery record a message starts with, if it does.
    pub(crate) delivery: Option<FirstDelivery<'a>>,
}

pub(crate) struct FirstDelivery<'a> {
    pub(crate) details: &'a str,
    pub(crate) event: EventKind,
}

impl<'a> InitialRow<'a> {
    pub(crate) fn of(send: &'a NewSend) -> Self {
        let queued =
            |status, due_at| Self { status, due_at: Some(due_at), hold_expiry: None, delivery: None };
        let settled = |status, hold_expiry, details, event| Self {
            status,
            due_at: None,
            hold_expiry,
            delivery: Some(FirstDelivery { details, event }),
        };
        match &send.state {
            InitialState::Pending => queued(Status::Pending, send.info.created_at),
            InitialState::Scheduled(due_at) => queued(Status::Scheduled, *due_at),
            InitialState::Held { details, expiry } => {
                settled(Status::Held, Some(*expiry), details, EventKind::Held)
            }
            InitialState::TestSent { details } => settled(Status::Sent, None, details, EventKind::Delivered),
        }
    }

    /// `message.accepted` is 1; the event of the first delivery, if any, 2.
    pub(crate) fn last_seq(&self) -> i64 {
        if self.delivery.is_some() { 2 } else { 1 }
    }
}
