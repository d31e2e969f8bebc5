//! What outcomes add up to; the same on both engines.

use std::collections::BTreeMap;

use postroad_model::{SourceId, Status, Timestamp};

use crate::records::Outcome;

/// Sent and bounced per source and day, in the order in which rows are locked.
#[derive(Debug, Default)]
pub(crate) struct SourceCounts(BTreeMap<(SourceId, i64), (i64, i64)>);

impl SourceCounts {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        let (sent, bounced) = match outcome.delivery.status {
            Status::Sent => (1, 0),
            Status::HardFail => (0, 1),
            _ => return,
        };
        if let Some(source_id) = outcome.source_id {
            let counts = self.0.entry((source_id, day_of(outcome.delivery.at))).or_default();
            *counts = (counts.0 + sent, counts.1 + bounced);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&(SourceId, i64), &(i64, i64))> {
        self.0.iter()
    }
}

/// Days since 1970 UTC.
pub(crate) fn day_of(moment: Timestamp) -> i64 {
    moment.as_secs().div_euclid(24 * 3_600)
}
