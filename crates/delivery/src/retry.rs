//! Retry schedule: when a temporarily failed message is tried again, and when it is given up.

use std::time::Duration;

use postroad_model::Timestamp;
use rand::Rng;

/// The pauses between attempts; the last one repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    pauses: Vec<Duration>,
    /// Counts from the time when the message was first due.
    give_up_after: Duration,
}

/// Pauses vary by up to this share, so that messages that failed together are not all retried together.
const JITTER: f64 = 0.1;

impl RetryPolicy {
    /// `pauses` has at least one entry.
    pub fn new(pauses: Vec<Duration>, give_up_after: Duration) -> Self {
        assert!(!pauses.is_empty(), "a retry schedule has at least one pause");
        Self { pauses, give_up_after }
    }

    pub fn pauses(&self) -> &[Duration] {
        &self.pauses
    }

    /// The longest pause, with its jitter.
    pub(crate) fn pause_max(&self) -> Duration {
        self.pauses.iter().copied().max().unwrap_or_default().mul_f64(1.0 + JITTER)
    }

    /// The schedule for simulator recipients, with pauses of seconds.
    pub(crate) fn simulator() -> Self {
        Self::new([1, 1, 2].map(Duration::from_secs).to_vec(), Duration::from_mins(1))
    }

    /// Time of the next attempt of a message that was first due at `first_due`. `None` if it is to be given up.
    ///
    /// The pause grows with the number of attempts. If the last attempt did not count, for example because the hosts'
    /// addresses are unknown, the pause also grows with the message's age. Otherwise the message would be tried every
    /// minute until it is given up.
    pub(crate) fn next_attempt(
        &self,
        attempts: u32,
        has_counted: bool,
        first_due: Timestamp,
        now: Timestamp,
        rng: &mut impl Rng,
    ) -> Option<Timestamp> {
        let age = now.since(first_due);
        if age >= self.give_up_after {
            return None;
        }
        let by_age = || pause_ends(&self.pauses).take_while(|sum| *sum <= age).count();
        let by_age = if has_counted { 0 } else { by_age() };
        let step = (attempts.saturating_sub(1) as usize).max(by_age).min(self.pauses.len() - 1);
        // Greylisting counts from the first attempt, often for a minute: a retry that is a second early is refused
        // again.
        let earliest = if step == 0 { 1.0 } else { 1.0 - JITTER };
        let jitter = rng.random_range(earliest..=1.0 + JITTER);
        Some(now.plus(self.pauses[step].mul_f64(jitter)))
    }
}

/// Time from the first attempt to the end of each pause.
pub(crate) fn pause_ends(pauses: &[Duration]) -> impl Iterator<Item = Duration> + '_ {
    pauses.iter().scan(Duration::ZERO, |sum, pause| {
        *sum += *pause;
        Some(*sum)
    })
}

impl Default for RetryPolicy {
    fn default() -> Self {
        let minutes = [1, 5, 10, 20, 40, 60, 120, 240, 360];
        Self::new(minutes.map(Duration::from_mins).to_vec(), Duration::from_hours(48))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause_minutes(attempts: u32, has_counted: bool, age: Duration) -> Option<f64> {
        let start = Timestamp::from_micros(0);
        let now = start.plus(age);
        let next =
            RetryPolicy::default().next_attempt(attempts, has_counted, start, now, &mut rand::rng())?;
        Some(next.since(now).as_secs_f64() / 60.0)
    }

    #[test]
    fn pauses_follow_the_schedule_within_a_tenth() {
        let mut age = Duration::ZERO;
        for (attempts, minutes) in (1..).zip([1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 240.0, 360.0, 360.0]) {
            let pause = pause_minutes(attempts, true, age).unwrap();
            assert!((pause / minutes - 1.0).abs() <= 0.1 + 1e-9, "attempt {attempts}: {pause} minutes");
            age += Duration::from_secs_f64(minutes * 60.0 * 0.99);
        }
    }

    #[test]
    fn the_pause_grows_with_age_if_the_last_attempt_did_not_count() {
        assert!(pause_minutes(0, false, Duration::from_mins(40)).unwrap() > 35.0);
    }

    #[test]
    fn first_refusal_of_a_message_that_waited_for_hours_is_retried_after_a_minute() {
        let minutes = |attempts| pause_minutes(attempts, true, Duration::from_hours(3)).unwrap();
        assert!(minutes(1) <= 1.1 + 1e-9, "{}", minutes(1));
        assert!(minutes(2) <= 5.5 + 1e-9);
    }

    #[test]
    fn a_message_is_given_up_after_two_days() {
        assert!(pause_minutes(20, true, Duration::from_hours(47)).is_some());
        assert!(pause_minutes(20, true, Duration::from_hours(48)).is_none());
        assert!(pause_minutes(1, true, Duration::from_hours(48)).is_none());
    }
}
