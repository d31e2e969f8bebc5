//! Timeline items of reschedules and webhook attempts.

use postroad_model::Timestamp;
use postroad_store::{Message, Reschedule, WebhookAttempt};
use serde_json::json;

use super::{TimelineItem, TimelineKind};

/// Items of reschedules, each with the previous time.
pub(super) fn of_reschedules(
    message: &Message,
    reschedules: Vec<Reschedule>,
) -> impl Iterator<Item = TimelineItem> {
    let mut before = message.send.options.send_at;
    reschedules.into_iter().map(move |Reschedule { at, send_at }| {
        let data = json!({
            "send_at": send_at.to_rfc3339(),
            "before": before.replace(send_at).map(Timestamp::to_rfc3339),
        });
        TimelineItem {
            at,
            kind: TimelineKind::Rescheduled,
            text: format!("Rescheduled to {}", send_at.to_rfc3339()),
            data,
        }
    })
}

pub(super) fn of_webhook_attempt(attempt: WebhookAttempt) -> TimelineItem {
    let WebhookAttempt { id, webhook_id, attempt, next_attempt_at } = attempt;
    let outcome = match (attempt.status, &attempt.error) {
        (Some(status), _) => format!("answered {status}"),
        (None, Some(error)) => error.clone(),
        (None, None) => "no answer".to_owned(),
    };
    TimelineItem {
        at: attempt.at,
        kind: TimelineKind::Webhook,
        text: format!("{} posted to webhook {}: {outcome}", attempt.kind.as_str(), webhook_id.0),
        data: json!({
            "attempt_id": id.0,
            "webhook_id": webhook_id.0,
            "event": attempt.kind,
            "number": attempt.number,
            "url": attempt.url,
            "status": attempt.status,
            "error": attempt.error,
            "time": attempt.duration_us as f64 / 1e6,
            "next_attempt_at": next_attempt_at.map(Timestamp::to_rfc3339),
        }),
    }
}
