//! How the rate rises again after a refusal: fast at first, slowly near the reached rate and a little beyond it, then
//! fast if nothing is refused.
//!
//! The reached rate is the one at which the receiver took messages until it refused; the tried rate is the one that was
//! allowed then. Constants that end in `_ROUGH` or `_SEARCH` apply at the `Knowledge` of that name.

use std::time::Duration;

use postroad_model::Timestamp;

const PER_MINUTE_MIN: f64 = 4.0;
/// The rise back to the reached rate takes as long as this many messages need at that rate, but within `RISE_SECS`
/// (shortest, longest).
const MESSAGES_PER_RISE: f64 = 320.0;
const RISE_SECS: (f64, f64) = (45.0, 150.0);
const RISE_SECS_ROUGH: (f64, f64) = (10.0, 25.0);
/// Beyond the reached rate, this share is added within `BEYOND_SECS`; after that the rate doubles every
/// `DOUBLING_SECS`.
const BEYOND_SHARE: f64 = 0.05;
const BEYOND_SECS: f64 = 50.0;
const BEYOND_SECS_ROUGH: f64 = 15.0;
/// If the tried rate was more than this many times the reached one, the limit is searched between the two rates. Then
/// the rise to the reached rate takes at most `RISE_SECS_AFTER_OVERSHOOT`, and from there to the tried rate
/// `BETWEEN_SECS`.
const OVERSHOOT: f64 = 1.2;
const RISE_SECS_AFTER_OVERSHOOT: f64 = 45.0;
const BETWEEN_SECS: f64 = 90.0;
const DOUBLING_SECS: f64 = 25.0;
const DOUBLING_SECS_ROUGH: f64 = 15.0;
const DOUBLING_SECS_SEARCH: f64 = 5.0;
/// During the search one message counts for at most this time.
const SEARCH_STEP: Duration = Duration::from_millis(2_500);

/// Confidence in the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// A lower bound, because a burst was refused long before a minute had passed; or a guess after a standstill.
    Search,
    /// Measured over a few messages between two refusals.
    Rough,
    /// Measured over at least half a minute or 30 messages, or restored from a stored estimate.
    Measured,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Curve {
    /// Rate from which the curve rises, in messages a minute.
    base: f64,
    /// The rate that was reached when the receiver refused.
    pub(super) reached: f64,
    /// The rate that was tried then, if it was much higher than `reached`.
    tried: Option<f64>,
    pub(super) since: Timestamp,
    /// Time after `since` during which the rate was fully used: an unused rate proves nothing.
    used: Duration,
    pub(super) knowledge: Knowledge,
}

impl Curve {
    pub(super) fn new(reached: f64, knowledge: Knowledge, now: Timestamp) -> Self {
        let reached = reached.max(PER_MINUTE_MIN);
        Self { base: reached, reached, tried: None, since: now, used: Duration::ZERO, knowledge }
    }

    /// Remembers the rate that was tried when the receiver refused.
    pub(super) fn with_tried_rate(mut self, rate: f64) -> Self {
        let is_measured = self.knowledge == Knowledge::Measured;
        self.tried = Some(rate).filter(|rate| is_measured && *rate > self.reached * OVERSHOOT);
        self
    }

    pub(super) fn is_after_overshoot(&self) -> bool {
        self.tried.is_some()
    }

    /// Starts again from this share of the reached rate.
    pub(super) fn restart(&mut self, share: f64, now: Timestamp) {
        (self.base, self.since, self.used) = (self.reached * share, now, Duration::ZERO);
    }

    /// Records that messages were sent at this rate for this time.
    pub(super) fn add_used_time(&mut self, time: Duration) {
        let is_search = self.knowledge == Knowledge::Search;
        self.used += if is_search { time.min(SEARCH_STEP) } else { time };
    }

    pub(super) fn per_minute(&self) -> f64 {
        let used = self.used.as_secs_f64();
        let (rise, beyond, doubling) = match self.knowledge {
            Knowledge::Search => return self.base * 2_f64.powf((used / DOUBLING_SECS_SEARCH).min(64.0)),
            Knowledge::Rough => (RISE_SECS_ROUGH, BEYOND_SECS_ROUGH, DOUBLING_SECS_ROUGH),
            Knowledge::Measured => (RISE_SECS, BEYOND_SECS, DOUBLING_SECS),
        };
        let longest = if self.is_after_overshoot() { RISE_SECS_AFTER_OVERSHOOT } else { f64::INFINITY };
        let rise = (MESSAGES_PER_RISE * 60.0 / self.reached).clamp(rise.0, rise.1).min(longest);
        if used < rise {
            let left = 1.0 - used / rise;
            return self.reached - (self.reached - self.base) * left.powi(3);
        }
        let used = used - rise;
        if let Some(tried) = self.tried {
            let way = (used / BETWEEN_SECS).min(1.0);
            let doublings = (used - BETWEEN_SECS).max(0.0) / doubling;
            return (self.reached + (tried - self.reached) * way) * 2_f64.powf(doublings.min(64.0));
        }
        if used < beyond {
            return self.reached * (1.0 + BEYOND_SHARE * used / beyond);
        }
        let doublings = (used - beyond) / doubling;
        self.reached * (1.0 + BEYOND_SHARE) * 2_f64.powf(doublings.min(64.0))
    }
}
