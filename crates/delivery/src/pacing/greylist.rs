//! Estimate of a receiver's greylisting time, from its replies.

use std::time::Duration;

use crate::retry::pause_ends;

/// Times that operators usually configure.
const USUAL_SECS: [u64; 8] = [60, 120, 180, 300, 600, 900, 1_800, 3_600];
/// After this many retries, one retry tests whether a shorter wait is enough.
const RETRIES_PER_SHORTER_WAIT: u32 = 20;
/// A stored estimate does not say which waits were too short: this share of the estimate is assumed to be too short.
const TOO_SHORT_SHARE: f64 = 0.4;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GreylistTime {
    /// The longest wait that was not enough.
    too_short: Option<Duration>,
    /// The shortest wait that was enough.
    enough: Option<Duration>,
    /// Retries since the last test of a shorter wait.
    retries_since_shorter_wait: u32,
}

impl GreylistTime {
    pub fn restored(enough: Duration) -> Self {
        let too_short = Some(enough.mul_f64(TOO_SHORT_SHARE));
        Self { enough: Some(enough), too_short, ..Self::default() }
    }

    /// The shortest wait that was enough; `None` if none is known.
    pub fn known(&self) -> Option<Duration> {
        self.enough
    }

    /// A message was refused again after this wait.
    pub fn refused_after(&mut self, waited: Duration) {
        self.too_short = self.too_short.max(Some(waited));
        // If a wait that was enough before is too short now, the greylisting time has become longer.
        self.enough = self.enough.filter(|enough| *enough > waited);
    }

    /// A message was accepted after this wait.
    pub fn accepted_after(&mut self, waited: Duration) {
        self.enough = Some(self.enough.map_or(waited, |enough| enough.min(waited)));
        self.too_short = self.too_short.filter(|too_short| *too_short < waited);
    }

    /// The longest usual time that fits the replies, or else the shortest wait that was enough. Never longer than the
    /// retry schedule would wait: until its first retry after the longest wait that was too short.
    pub fn estimate(&self, pauses: &[Duration]) -> Option<Duration> {
        let enough = self.enough?;
        let usual = self.candidates(enough).next().unwrap_or(enough);
        let too_short = self.too_short.unwrap_or_default();
        Some(pause_ends(pauses).find(|sum| *sum > too_short).map_or(usual, |longest| usual.min(longest)))
    }

    /// Wait before the first retry; `None` if no wait is known to be enough.
    pub fn pause(&mut self, pauses: &[Duration]) -> Option<Duration> {
        let longest = self.estimate(pauses)?;
        let less = self.candidates(longest).nth(1);
        if let Some(less) = less.filter(|_| self.retries_since_shorter_wait >= RETRIES_PER_SHORTER_WAIT) {
            self.retries_since_shorter_wait = 0;
            return Some(less);
        }
        self.retries_since_shorter_wait += 1;
        Some(longest)
    }

    /// Usual times up to `longest` that fit the replies; longest first.
    fn candidates(&self, longest: Duration) -> impl Iterator<Item = Duration> + use<> {
        let too_short = self.too_short.unwrap_or_default();
        let usual = USUAL_SECS.into_iter().rev().map(Duration::from_secs);
        usual.filter(move |wait| *wait <= longest && *wait > too_short)
    }
}
