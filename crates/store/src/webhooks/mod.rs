//! Webhooks: endpoints, the outbox of events waiting for them, and the log of attempts.

mod attempts;
mod endpoints;
mod health;
pub(crate) mod outbox;
mod replay;

pub use attempts::{
    NewWebhookAttempt, WebhookAttempt, WebhookAttemptFilter, WebhookAttemptPage, WebhookNext, WebhookOutcome,
};
pub use endpoints::{NewWebhook, Webhook, WebhookChange, WebhookSecret};
pub use outbox::{WebhookDue, WebhookWork};
pub use replay::{Replay, ReplayProgress};
