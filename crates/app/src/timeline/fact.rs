//! Timeline items of events, reschedules and webhook attempts.

use postroad_model::{EventKind, Timestamp};
use postroad_store::{Event, Message, Reschedule, WebhookAttempt};
use serde_json::{Value, json};

use super::TimelineItem;

/// The item of an event; `None` for events without one, such as those whose delivery record is shown.
pub(super) fn of_event(event: &Event) -> Option<TimelineItem> {
    let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
    let by_bot = if data["bot"] == true { ", probably by a program" } else { "" };
    let (kind, text) = match event.kind {
        EventKind::Released => ("released", "Released from its hold and queued".to_owned()),
        EventKind::Opened => ("opened", format!("Opened{by_bot}")),
        EventKind::Clicked => {
            let url = data["url"].as_str().unwrap_or("a link");
            ("clicked", format!("Clicked{by_bot}: {url}"))
        }
        EventKind::Unsubscribed => ("unsubscribed", "The recipient unsubscribed".to_owned()),
        EventKind::Complained => ("complained", "The recipient complained about it as spam".to_owned()),
        _ => return None,
    };
    Some(TimelineItem { at: event.at, kind, text, data })
}

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
            kind: "rescheduled",
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
        kind: "webhook",
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
