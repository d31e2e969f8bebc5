//! Timeline items of reschedules.

use postroad_model::Timestamp;
use postroad_store::{Message, Reschedule};
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
