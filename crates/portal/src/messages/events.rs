//! Events of a message as rows, with the webhook attempts for each.

use postroad_app::MessageEvent;
use postroad_store::WebhookAttempt;
use serde_json::Value;

use super::newest_rows::{NewestRows, escaped_bytes, shortened};
use crate::display::{When, duration};

/// Estimated bytes of markup for one webhook attempt.
const ATTEMPT_MARKUP_BYTES: usize = 600;

pub(super) struct EventRow {
    pub(super) id: i64,
    pub(super) seq: i64,
    pub(super) at: When,
    pub(super) kind: &'static str,
    /// Details as JSON, one field per line; empty if there are none.
    pub(super) data: String,
    pub(super) attempts: Vec<AttemptRow>,
}

pub(super) struct AttemptRow {
    pub(super) webhook: i64,
    pub(super) url: String,
    pub(super) at: When,
    pub(super) number: u32,
    pub(super) is_good: bool,
    pub(super) status: Option<u16>,
    pub(super) error: Option<String>,
    pub(super) took: String,
    pub(super) next_attempt_at: Option<When>,
}

/// The newest events that fit on a page, after the newest `skipped` ones.
pub(super) fn event_rows(events: Vec<MessageEvent>, skipped: usize) -> NewestRows<EventRow> {
    NewestRows::new(events.into_iter().map(event_row).collect(), skipped, bytes_of)
}

fn bytes_of(row: &EventRow) -> usize {
    let attempt = |attempt: &AttemptRow| {
        ATTEMPT_MARKUP_BYTES + escaped_bytes(&attempt.url) + attempt.error.as_deref().map_or(0, escaped_bytes)
    };
    escaped_bytes(&row.data) + row.attempts.iter().map(attempt).sum::<usize>()
}

fn event_row(event: MessageEvent) -> EventRow {
    let MessageEvent { event, attempts } = event;
    let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
    let is_empty = data.as_object().is_none_or(serde_json::Map::is_empty);
    EventRow {
        id: event.id.0,
        seq: event.seq,
        at: When(event.at),
        kind: event.kind.as_str(),
        data: if is_empty { String::new() } else { format!("{:#}", with_short_texts(data)) },
        attempts: attempts.into_iter().map(attempt_row).collect(),
    }
}

fn with_short_texts(data: Value) -> Value {
    match data {
        Value::String(text) => shortened(text).into(),
        Value::Array(values) => values.into_iter().map(with_short_texts).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, with_short_texts(value))).collect()
        }
        other => other,
    }
}

fn attempt_row(attempt: WebhookAttempt) -> AttemptRow {
    let WebhookAttempt { webhook_id, attempt, next_attempt_at, .. } = attempt;
    AttemptRow {
        webhook: webhook_id.0,
        url: attempt.url,
        at: When(attempt.at),
        number: attempt.number,
        is_good: attempt.error_class.is_none(),
        status: attempt.status,
        error: attempt.error,
        took: duration(attempt.duration_us),
        next_attempt_at: next_attempt_at.map(When),
    }
}
