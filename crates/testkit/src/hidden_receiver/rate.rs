//! Counting of messages from one source address, as receivers do it.

use std::collections::VecDeque;
use std::time::Duration;

use postroad_model::Timestamp;

use super::Window;

const MINUTE: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(super) struct RateCount {
    /// Messages of the last 60 seconds, or of this minute of the clock; empty for a token bucket.
    taken: VecDeque<Timestamp>,
    /// Remaining tokens, and the time of the last refill.
    tokens: Option<(f64, Timestamp)>,
}

impl RateCount {
    pub(super) fn has_room(&mut self, window: Window, per_minute: f64, now: Timestamp) -> bool {
        match window {
            Window::Sliding => {
                while self.taken.front().is_some_and(|at| now.since(*at) >= MINUTE) {
                    self.taken.pop_front();
                }
                (self.taken.len() as f64) < per_minute
            }
            Window::Fixed => {
                let minute = |at: Timestamp| at.as_micros().div_euclid(60_000_000);
                while self.taken.front().is_some_and(|at| minute(*at) < minute(now)) {
                    self.taken.pop_front();
                }
                (self.taken.len() as f64) < per_minute
            }
            Window::Bucket { reserve_secs } => self.refill(reserve_secs, per_minute, now) >= 1.0,
        }
    }

    pub(super) fn take(&mut self, window: Window, per_minute: f64, now: Timestamp) {
        match window {
            Window::Sliding | Window::Fixed => self.taken.push_back(now),
            Window::Bucket { reserve_secs } => {
                let left = self.refill(reserve_secs, per_minute, now);
                self.tokens = Some((left - 1.0, now));
            }
        }
    }

    /// Adds the tokens since the last refill; returns the number of tokens.
    fn refill(&mut self, reserve_secs: u32, per_minute: f64, now: Timestamp) -> f64 {
        let reserve = (per_minute * f64::from(reserve_secs) / 60.0).max(1.0);
        let (left, at) = self.tokens.unwrap_or((reserve, now));
        let left = (left + now.since(at).as_secs_f64() * per_minute / 60.0).min(reserve);
        self.tokens = Some((left, now));
        left
    }
}
