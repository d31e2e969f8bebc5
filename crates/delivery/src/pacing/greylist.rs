//! How long a receiver's greylisting lasts, as its answers show it.

use std::time::Duration;

/// What people set.
const USUAL_SECS: [u64; 8] = [60, 120, 180, 300, 600, 900, 1_800, 3_600];
/// One retry in so many tries whether less is enough.
const TRY_LESS_IN: u32 = 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GreylistTime {
    /// The longest wait that was not enough.
    too_short: Option<Duration>,
    /// The shortest wait that was enough.
    enough: Option<Duration>,
    /// Retries since the last one that tried less.
    since_tried_less: u32,
}

impl GreylistTime {
    pub fn restored(enough: Duration) -> Self {
        Self { enough: Some(enough), ..Self::default() }
    }

    pub fn known(&self) -> Option<Duration> {
        self.enough
    }

    /// Refused again after this time.
    pub fn refused_after(&mut self, waited: Duration) {
        self.too_short = self.too_short.max(Some(waited));
        // It has become longer.
        self.enough = self.enough.filter(|enough| *enough > waited);
    }

    /// Accepted after this time.
    pub fn taken_after(&mut self, waited: Duration) {
        self.enough = Some(self.enough.map_or(waited, |enough| enough.min(waited)));
        self.too_short = self.too_short.filter(|too_short| *too_short < waited);
    }

    /// When to come again after the first refusal; `None` if nothing is known.
    pub fn pause(&mut self) -> Option<Duration> {
        let enough = self.enough?;
        let too_short = self.too_short.unwrap_or_default();
        let is_open = |secs: &&u64| {
            let wait = Duration::from_secs(**secs);
            wait <= enough && wait > too_short
        };
        let mut candidates = USUAL_SECS.iter().filter(is_open).rev();
        let longest = candidates.next().map(|secs| Duration::from_secs(*secs));
        let less = candidates.next().map(|secs| Duration::from_secs(*secs));
        match (longest, less) {
            (Some(_), Some(less)) if self.since_tried_less >= TRY_LESS_IN => {
                self.since_tried_less = 0;
                Some(less)
            }
            (Some(longest), _) => {
                self.since_tried_less += 1;
                Some(longest)
            }
            (None, _) => Some(enough),
        }
    }
}
