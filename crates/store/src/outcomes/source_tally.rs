//! Counts outcomes per source address, for both engines.

use std::collections::BTreeMap;
use std::sync::Arc;

use postroad_model::{SourceId, Status};

use super::outcome::Outcome;
use crate::pools::source_days::day_of;

/// Key of a count: source, receiver group, day.
pub(crate) type SourceDayKey = (SourceId, Arc<str>, i64);

/// Sent and bounced counts, in the order in which their rows are locked.
#[derive(Debug, Default)]
pub(crate) struct SourceTally(BTreeMap<SourceDayKey, (i64, i64)>);

impl SourceTally {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        let (sent, bounced) = match outcome.delivery.status {
            Status::Sent => (1, 0),
            Status::HardFail => (0, 1),
            _ => return,
        };
        if let Some(source_id) = outcome.source_id {
            let key = (source_id, Arc::clone(&outcome.provider), day_of(outcome.delivery.at));
            let (sent_total, bounced_total) = self.0.entry(key).or_default();
            *sent_total += sent;
            *bounced_total += bounced;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SourceDayKey, &(i64, i64))> {
        self.0.iter()
    }
}
