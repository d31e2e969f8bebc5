//! Counts and latencies of one span of time and one set of dimensions.

use super::counts::Counts;
use super::histogram::Histogram;
use crate::error::StoreError;

/// One row of `counters`, decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sums {
    pub counts: Counts,
    /// Times from acceptance, or from the scheduled time, to the start of the first attempt.
    pub first_attempt: Histogram,
    /// Times from acceptance, or from the scheduled time, to delivery.
    pub sent: Histogram,
}

impl Sums {
    pub fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.first_attempt.merge(&other.first_attempt);
        self.sent.merge(&other.sent);
    }

    pub(crate) fn add_encoded(&mut self, encoded: &[Vec<u8>; 3]) -> Result<(), StoreError> {
        let [counts, first_attempt, sent] = encoded;
        self.counts.add_encoded(counts)?;
        self.first_attempt.add_encoded(first_attempt)?;
        self.sent.add_encoded(sent)
    }

    pub(crate) fn encode(&self) -> [Vec<u8>; 3] {
        [self.counts.encode(), self.first_attempt.encode(), self.sent.encode()]
    }
}
