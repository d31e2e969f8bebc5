//! Events and texts about held messages.

use postroad_model::{EventKind, HoldReason, Status, SuppressionReason, Timestamp};
use serde_json::json;

use super::event::NewEvent;
use crate::suppressions::Suppression;

impl NewEvent {
    /// The event of a message held for any reason except suppression.
    pub(crate) fn held(reason: HoldReason, details: &str) -> Self {
        let data = json!({ "status": Status::Held, "details": details, "reason": reason });
        Self { kind: EventKind::Held, data: data.to_string() }
    }

    pub(crate) fn held_suppressed(details: &str, reason: SuppressionReason, since: Timestamp) -> Self {
        let data = json!({
            "status": Status::Held,
            "details": details,
            "reason": HoldReason::Suppressed,
            "suppression": { "reason": reason, "since": since.to_rfc3339() },
        });
        Self { kind: EventKind::Held, data: data.to_string() }
    }
}

impl Suppression {
    /// The text in the delivery record of a message that this suppression holds.
    pub fn hold_details(&self) -> String {
        suppression_details(self.reason, &self.details, self.created_at)
    }

    /// The event of a message that this suppression holds.
    pub fn held_event(&self) -> NewEvent {
        NewEvent::held_suppressed(&self.hold_details(), self.reason, self.created_at)
    }
}

/// The text in the delivery record of a message whose recipient is suppressed.
pub(crate) fn suppression_details(reason: SuppressionReason, details: &str, since: Timestamp) -> String {
    let cause = format!("The address is suppressed: {reason} since {since}");
    if details.is_empty() { cause } else { format!("{cause}: {details}") }
}
