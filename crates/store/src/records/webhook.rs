//! Webhooks: endpoints, what they are still to be told of, and what came of telling them.

use std::fmt;

use postroad_model::{
    EventId, EventKind, EventSet, MessageId, ServerId, Timestamp, WebhookAttemptId, WebhookFormat, WebhookId,
};

use super::told::ToldEvent;

/// A signing secret; never shown by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(pub String);

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

#[derive(Debug, Clone)]
pub struct NewWebhook {
    pub server_id: ServerId,
    pub url: String,
    pub events: EventSet,
    pub format: WebhookFormat,
    pub enabled: bool,
    pub secret: WebhookSecret,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub id: WebhookId,
    pub server_id: ServerId,
    pub url: String,
    pub events: EventSet,
    pub format: WebhookFormat,
    pub enabled: bool,
    /// Why we disabled it, if we did.
    pub disabled_reason: Option<String>,
    pub secret: WebhookSecret,
    /// Until then it is signed with this one too.
    pub previous_secret: Option<(WebhookSecret, Timestamp)>,
    /// When the failures began that were not yet followed by a success.
    pub failing_since: Option<Timestamp>,
    pub last_success_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What to change; `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct WebhookChange {
    pub url: Option<String>,
    pub events: Option<EventSet>,
    pub format: Option<WebhookFormat>,
    pub enabled: Option<bool>,
}

/// When a webhook has something to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookDue {
    pub server_id: ServerId,
    pub webhook_id: WebhookId,
    pub due_at: Timestamp,
}

/// An event that a webhook is to be told of now.
#[derive(Debug, Clone)]
pub struct WebhookWork {
    pub event: ToldEvent,
    /// Attempts made before.
    pub attempts: u32,
}

/// What came of telling a webhook of an event.
#[derive(Debug, Clone)]
pub struct WebhookOutcome {
    pub server_id: ServerId,
    pub webhook_id: WebhookId,
    pub attempt: NewWebhookAttempt,
    pub next: WebhookNext,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookNext {
    /// It was told.
    Done,
    RetryAt(Timestamp),
    /// It is not told any more.
    GiveUp,
    /// The webhook's format has no words for it, as it may be after a change: not told, and no failure of the receiver.
    Unspeakable,
    /// Not from the queue: a test.
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWebhookAttempt {
    pub event_id: EventId,
    /// 0 for an event of the server.
    pub message_id: MessageId,
    pub kind: EventKind,
    pub at: Timestamp,
    /// 1 for the first attempt for this event.
    pub number: u32,
    pub url: String,
    pub status: Option<u16>,
    /// The beginning of the answer.
    pub answer: String,
    pub error_class: Option<String>,
    pub error: Option<String>,
    pub connect_us: Option<i64>,
    pub duration_us: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookAttempt {
    pub id: WebhookAttemptId,
    pub webhook_id: WebhookId,
    pub attempt: NewWebhookAttempt,
    pub next_attempt_at: Option<Timestamp>,
}

/// What to tell a webhook again.
#[derive(Debug, Clone, Copy)]
pub enum Replay {
    Event(EventId),
    /// Events that happened in this range, its end excluded; those behind `after`.
    Between {
        from: Timestamp,
        to: Timestamp,
        after: EventId,
    },
}

/// How far a replay came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    pub events: u64,
    /// The last event that was looked at, if there may be more in the range.
    pub continue_after: Option<EventId>,
}
