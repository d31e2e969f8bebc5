//! Adding events up: what is counted, by what, in which spans of time. Nothing here touches a database.

mod counts;
mod day_counts;
mod grain;
mod histogram;
mod shape;
mod tally;
mod varint;

pub use counts::{Counts, Metric};
pub(crate) use day_counts::{DayCounts, add_days, block_start};
pub use grain::Grain;
pub use histogram::Histogram;
pub use shape::Shape;
pub(crate) use tally::{CountedEvent, EventData, Facts, Hold, Tally};
pub use tally::{CountingRules, OTHER_PROVIDER};

use crate::error::StoreError;

/// Everything counted of one span of time and one set of dimensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sums {
    pub counts: Counts,
    /// From acceptance (or the time it was scheduled for) to the start of the first attempt.
    pub first_attempt: Histogram,
    /// Likewise, until it was sent.
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

/// Tags of a server that are told apart, and likewise its templates.
pub const WORDS_MAX: usize = 1_000;
/// What those beyond read.
pub const SURPLUS: &str = "(other)";

/// What a message is counted by. Texts are empty and ids 0 for "none".
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dimensions {
    /// Of the From header.
    pub domain: String,
    pub tag: String,
    /// Whose mail servers the recipient's domain has.
    pub provider: String,
    pub template: String,
    pub pool_id: i64,
    pub credential_id: i64,
}
