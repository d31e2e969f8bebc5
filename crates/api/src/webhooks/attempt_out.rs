//! JSON form of one attempt to post an event to a webhook.

use crate::documented::ToSchema;
use postroad_events::body::event_id_text;
use postroad_model::Timestamp;
use postroad_store::WebhookAttempt;
use serde::Serialize;

/// One attempt. Times are RFC 3339.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptOut {
    id: i64,
    webhook_id: i64,
    #[schema(example = "evt_5123456789012345")]
    event_id: String,
    #[schema(example = "message.delivered")]
    event_type: &'static str,
    /// Null for an event without a message.
    message_id: Option<i64>,
    at: String,
    /// 1 for the first attempt for this event.
    number: u32,
    url: String,
    success: bool,
    /// HTTP status of the receiver's answer, if there was one.
    status: Option<u16>,
    /// First 4 KiB of the receiver's answer.
    answer: String,
    /// `dns`, `refused_address`, `connect`, `tls`, `timeout`, `protocol`, `http_status` or `format`; `url`, `secret` or
    /// `signature` if Postroad could not make the post.
    error_class: Option<String>,
    error: Option<String>,
    /// Time for DNS, TCP and TLS; null on a reused connection.
    connect_ms: Option<f64>,
    duration_ms: f64,
    /// Time of the next attempt; null if there is none.
    next_attempt_at: Option<String>,
}

impl From<WebhookAttempt> for AttemptOut {
    fn from(attempt: WebhookAttempt) -> Self {
        let WebhookAttempt { id, webhook_id, attempt, next_attempt_at } = attempt;
        let milliseconds = |micros: i64| micros as f64 / 1e3;
        Self {
            id: id.0,
            webhook_id: webhook_id.0,
            event_id: event_id_text(attempt.event_id),
            event_type: attempt.kind.as_str(),
            message_id: Some(attempt.message_id.0).filter(|id| *id != 0),
            at: attempt.at.to_rfc3339(),
            number: attempt.number,
            url: attempt.url,
            success: attempt.error_class.is_none(),
            status: attempt.status,
            answer: attempt.answer,
            error_class: attempt.error_class,
            error: attempt.error,
            connect_ms: attempt.connect_us.map(milliseconds),
            duration_ms: milliseconds(attempt.duration_us),
            next_attempt_at: next_attempt_at.map(Timestamp::to_rfc3339),
        }
    }
}
