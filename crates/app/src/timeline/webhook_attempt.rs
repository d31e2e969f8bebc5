//! Timeline item of an attempt to post an event to a webhook.

use postroad_model::Timestamp;
use postroad_store::WebhookAttempt;
use serde_json::json;

use super::{TimelineItem, TimelineKind};

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
