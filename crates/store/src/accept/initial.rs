//! Initial states of messages, causes to hold them, and which messages count against limits; for both engines.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use postroad_model::{
    DeliveryId, EventKind, HoldReason, IdGenerator, LimitPeriod, MessageId, ServerId, Status,
    SuppressionReason, Timestamp,
};
use serde_json::json;

use super::send::{InitialState, NewRecipient, NewSend};
use crate::events::NewEvent;
use crate::events::hold_events::suppression_details;

/// A hold that the store decides on expires after this time.
pub(crate) const HOLD_DURATION: Duration = Duration::from_hours(7 * 24);
/// `queue.scheduled` of a message that counts against the limits of its server and account when it becomes due.
pub(crate) const SCHEDULED: i64 = 1;
/// `queue.scheduled` of a message that does not count, because its recipient is exempt or the message was counted
/// earlier.
pub(crate) const SCHEDULED_UNCOUNTED: i64 = 2;

/// Explanation of a hold in development mode.
pub const HELD_IN_DEVELOPMENT: &str =
    "The server is in development mode, so the message is held until it is released";

/// Why a recipient is held, determined when the message is accepted or becomes due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HoldCause {
    Development,
    Suppressed { reason: SuppressionReason, details: String, since: Timestamp },
    OverLimit { limit: u32 },
    OverAccountLimit { limit: u32, period: LimitPeriod },
}

impl HoldCause {
    fn details(&self) -> String {
        match self {
            Self::Development => HELD_IN_DEVELOPMENT.to_owned(),
            Self::Suppressed { reason, details, since } => suppression_details(*reason, details, *since),
            Self::OverLimit { limit } => format!("The hourly limit of {limit} messages is reached"),
            Self::OverAccountLimit { limit, period } => {
                let period = period.with_article();
                format!("The account's limit of {limit} messages {period} is reached")
            }
        }
    }

    /// Record of a held message: explanation, event, and when the hold ends.
    pub(crate) fn hold(&self, now: Timestamp) -> (String, NewEvent, Timestamp) {
        let details = self.details();
        let event = self.event(&details);
        (details, event, now.plus(HOLD_DURATION))
    }

    fn event(&self, details: &str) -> NewEvent {
        match self {
            Self::Development => NewEvent::held(HoldReason::Development, details),
            Self::Suppressed { reason, since, .. } => NewEvent::held_suppressed(details, *reason, *since),
            Self::OverLimit { .. } => NewEvent::held(HoldReason::HourlyLimit, details),
            Self::OverAccountLimit { .. } => NewEvent::held(HoldReason::AccountLimit, details),
        }
    }
}

/// Hold causes of a batch, by message.
pub(crate) type HoldCauses = HashMap<MessageId, HoldCause>;

/// Whether a suppression or a limit may hold the message of this recipient. Exempt recipients, and messages that start
/// as held or in test mode, are not checked.
pub(crate) fn may_be_held(send: &NewSend, recipient: &NewRecipient) -> bool {
    !recipient.exempt && matches!(send.state, InitialState::Pending | InitialState::Scheduled(_))
}

/// The hour in which a send counts, as hours since 1970.
pub(crate) fn hour_of(send: &NewSend) -> i64 {
    hour_at(send.info.created_at)
}

/// Hours since 1970.
pub(crate) fn hour_at(moment: Timestamp) -> i64 {
    moment.as_secs() / 3_600
}

/// Messages of a send that count against the limits of its server and its account now. Scheduled messages count when
/// they become due.
pub(crate) fn counted_recipients<'a>(
    send: &'a NewSend,
    causes: &'a HoldCauses,
) -> impl Iterator<Item = &'a NewRecipient> {
    let counts = move |recipient: &&NewRecipient| {
        send.state == InitialState::Pending
            && may_be_held(send, recipient)
            && !causes.contains_key(&recipient.id)
    };
    send.recipients.iter().filter(counts)
}

/// Adds a hold cause for each of `messages` beyond `limit`. `before` is the number of messages counted earlier in the
/// same hour.
pub(crate) fn hold_beyond(limit: u32, before: i64, messages: &[MessageId], causes: &mut HoldCauses) {
    let room = (i64::from(limit) - before).clamp(0, messages.len() as i64) as usize;
    for id in &messages[room..] {
        causes.insert(*id, HoldCause::OverLimit { limit });
    }
}

/// Key of the messages counted for an hourly limit: server, and hours since 1970.
pub(crate) type ServerHour = (ServerId, i64);

/// Initial values of a message, its queue entry and its first delivery record.
pub(crate) struct InitialRow<'a> {
    pub(crate) status: Status,
    /// When the message's queue entry is due; `None` if the message gets no queue entry.
    pub(crate) due_at: Option<Timestamp>,
    /// `queue.scheduled` of the queue entry.
    pub(crate) scheduled: i64,
    pub(crate) hold_expiry: Option<Timestamp>,
    /// Delivery record written at acceptance; only held and test messages have one.
    pub(crate) delivery: Option<FirstDelivery<'a>>,
}

pub(crate) struct FirstDelivery<'a> {
    pub(crate) id: DeliveryId,
    pub(crate) details: Cow<'a, str>,
    pub(crate) event: NewEvent,
}

impl<'a> InitialRow<'a> {
    pub(crate) fn of(
        send: &'a NewSend,
        recipient: &NewRecipient,
        causes: &HoldCauses,
        ids: &IdGenerator,
    ) -> Self {
        let with_entry = |status, due_at, scheduled| Self {
            status,
            due_at: Some(due_at),
            scheduled,
            hold_expiry: None,
            delivery: None,
        };
        let with_delivery = |status, hold_expiry, details, event| {
            let delivery = Some(FirstDelivery { id: DeliveryId(ids.next()), details, event });
            Self { status, due_at: None, scheduled: 0, hold_expiry, delivery }
        };
        if let Some(cause) = causes.get(&recipient.id) {
            let (details, event, expiry) = cause.hold(send.info.created_at);
            return with_delivery(Status::Held, Some(expiry), details.into(), event);
        }
        match &send.state {
            InitialState::Pending => with_entry(Status::Pending, send.info.created_at, 0),
            InitialState::Scheduled(due_at) => {
                let scheduled = if recipient.exempt { SCHEDULED_UNCOUNTED } else { SCHEDULED };
                with_entry(Status::Scheduled, *due_at, scheduled)
            }
            InitialState::Held { reason, details, expiry } => {
                let event = NewEvent::held(*reason, details);
                with_delivery(Status::Held, Some(*expiry), details.into(), event)
            }
            InitialState::TestSent { details } => {
                let data = json!({ "status": Status::Sent, "details": details });
                let event = NewEvent { kind: EventKind::Delivered, data: data.to_string() };
                with_delivery(Status::Sent, None, details.into(), event)
            }
        }
    }

    /// `seq` of the last initial event: 1 for `message.accepted`, 2 if an event of a first delivery follows.
    pub(crate) fn last_seq(&self) -> i64 {
        if self.delivery.is_some() { 2 } else { 1 }
    }
}
