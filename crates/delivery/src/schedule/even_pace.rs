//! An even pace: messages at equal intervals, without bursts, so that no second and no minute ever has more messages
//! than the rate allows. Unlike a token bucket, it saves nothing up while nothing is sent.

use std::time::Duration;

use postroad_model::{RatePeriod, SendRate, Timestamp};

/// Network jitter changes the intervals at the receiver; a pace slightly below the limit keeps the limit there too.
const MARGIN: f64 = 1.03;

#[derive(Debug, Clone, Copy)]
pub(crate) struct EvenPace {
    interval: Duration,
    free_at: Timestamp,
}

impl EvenPace {
    /// `count` messages in each `period`; at least one.
    pub(crate) fn new(count: u32, period: Duration) -> Self {
        Self::per_minute(f64::from(count.max(1)) * 60.0 / period.as_secs_f64())
    }

    /// The share of one node in a rate that several nodes share.
    pub(crate) fn of_rate(rate: SendRate, nodes: u32) -> Self {
        let period = match rate.per {
            RatePeriod::Second => Duration::from_secs(1),
            RatePeriod::Minute => Duration::from_mins(1),
            RatePeriod::Hour => Duration::from_hours(1),
        };
        Self::new(rate.count, period * nodes.max(1))
    }

    pub(crate) fn per_minute(rate: f64) -> Self {
        Self { interval: interval(rate), free_at: Timestamp::from_micros(i64::MIN) }
    }

    /// When the next message may be sent; `None` if one may be sent now.
    pub(crate) fn blocked_until(&self, now: Timestamp) -> Option<Timestamp> {
        (self.free_at > now).then_some(self.free_at)
    }

    /// When the next message may be sent; in the past if one may be sent now.
    pub(crate) fn free_at(&self) -> Timestamp {
        self.free_at
    }

    pub(crate) fn shift_back(&mut self, by: Duration) {
        self.free_at = self.free_at.minus(by);
    }

    /// Counts a message that is sent now.
    pub(crate) fn count_message(&mut self, now: Timestamp) {
        self.free_at = now.plus(self.interval);
    }
}

fn interval(per_minute: f64) -> Duration {
    Duration::from_secs_f64(60.0 * MARGIN / per_minute.max(1e-3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_window_of_a_second_holds_more_than_the_rate() {
        let mut pace = EvenPace::new(50, Duration::from_secs(1));
        let (mut now, mut sent) = (Timestamp::from_micros(0), Vec::new());
        while now < Timestamp::from_micros(5_000_000) {
            if pace.blocked_until(now).is_none() {
                pace.count_message(now);
                sent.push(now);
            }
            now = now.plus(Duration::from_micros(700));
        }
        for (at, first) in sent.iter().enumerate() {
            let window = sent[at..].iter().take_while(|t| t.since(*first) < Duration::from_secs(1)).count();
            assert!(window <= 50, "{window}");
        }
        assert!(sent.len() > 230, "{}", sent.len());
    }
}
