//! Filters of the list of suppressions: a reason and days.

use postroad_app::analytics::Zone;
use postroad_model::SuppressionReason;
use postroad_store::{SuppressionCursor, SuppressionFilter};

use crate::days::DayRange;
use crate::fields::Fields;
use crate::query::query;

/// Filters from the query string of a request.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    pub(super) reason: Option<SuppressionReason>,
    pub(super) days: DayRange,
}

impl Filters {
    pub(super) fn read(fields: &Fields, zone: &Zone) -> Self {
        let reason = SuppressionReason::parse(fields.text("reason"));
        Self { reason, days: DayRange::read(fields, zone) }
    }

    pub(super) fn is_set(&self) -> bool {
        self.reason.is_some() || self.days.is_set()
    }

    pub(super) fn selection(&self) -> SuppressionFilter {
        SuppressionFilter { reason: self.reason, since: self.days.from(), until: self.days.to() }
    }

    /// Query string of the list with the same filters; with `after`, of the page that begins after that entry.
    pub(super) fn query(&self, after: Option<&SuppressionCursor>) -> String {
        let at = after.map(|cursor| cursor.created_at.as_micros().to_string()).unwrap_or_default();
        query(&[
            ("reason", self.reason.map_or("", SuppressionReason::as_str)),
            ("since", &self.days.since),
            ("until", &self.days.until),
            ("at", &at),
            ("after", after.map_or("", |cursor| &cursor.address)),
        ])
    }
}
