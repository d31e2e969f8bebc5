//! Filters of a webhook's attempts: the result, and days.

use postroad_app::analytics::Zone;
use postroad_store::WebhookAttemptFilter;

use crate::days::DayRange;
use crate::fields::Fields;
use crate::query::query;

/// Filters from the query string of a request.
pub(super) struct Filters {
    /// Result of the attempts to show: `succeeded` (the endpoint accepted the event), `failed`, or empty for all.
    pub(super) result: String,
    pub(super) days: DayRange,
}

impl Filters {
    pub(super) fn read(fields: &Fields, zone: &Zone) -> Self {
        Self { result: fields.text("result").to_owned(), days: DayRange::read(fields, zone) }
    }

    pub(super) fn is_set(&self) -> bool {
        self.succeeded_filter().is_some() || self.days.is_set()
    }

    pub(super) fn is(&self, result: &str) -> bool {
        self.result == result
    }

    fn succeeded_filter(&self) -> Option<bool> {
        match self.result.as_str() {
            "succeeded" => Some(true),
            "failed" => Some(false),
            _ => None,
        }
    }

    pub(super) fn selection(&self) -> WebhookAttemptFilter {
        WebhookAttemptFilter {
            succeeded: self.succeeded_filter(),
            since: self.days.from(),
            until: self.days.to(),
        }
    }

    /// Query string of the page with the same filters that begins before this attempt.
    pub(super) fn query(&self, before: &str) -> String {
        let result = if self.succeeded_filter().is_some() { &self.result } else { "" };
        let (since, until) = (&self.days.since, &self.days.until);
        query(&[("result", result), ("since", since), ("until", until), ("before", before)])
    }
}
