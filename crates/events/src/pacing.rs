//! Pacing of one endpoint: slow start while it answers; single posts with pauses while it fails.

use std::time::Duration;

use postroad_model::Timestamp;

/// Consecutive failures from which an endpoint counts as failing.
const FAILING_FROM: u32 = 3;
/// Consecutive failures from which each failure begins a pause.
const PAUSING_FROM: u32 = 5;
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(crate) struct Pacing {
    /// Number of posts that may be in progress.
    window: usize,
    window_max: usize,
    /// Consecutive failures.
    failures: u32,
    /// When the last counted failure ended.
    failed_at: Option<Timestamp>,
    paused_until: Option<Timestamp>,
    /// End of a pause that answers to posts in progress do not shorten: requested by the receiver, or after the store
    /// refused an outcome.
    paused_at_least_until: Option<Timestamp>,
}

impl Pacing {
    pub(crate) fn new(window_max: usize) -> Self {
        Self {
            window: 1,
            window_max: window_max.max(1),
            failures: 0,
            failed_at: None,
            paused_until: None,
            paused_at_least_until: None,
        }
    }

    pub(crate) fn window(&self) -> usize {
        self.window
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.failures >= FAILING_FROM
    }

    pub(crate) fn record_success(&mut self) {
        self.failures = 0;
        self.paused_until = None;
        self.window = (self.window + 1).min(self.window_max);
    }

    /// Records a failure. From `PAUSING_FROM` consecutive failures on, each failure begins a pause: a dead endpoint
    /// with a long queue must not get many posts, nor fill the log of attempts.
    pub(crate) fn record_failure(&mut self, begun_at: Timestamp, now: Timestamp) {
        self.window = 1;
        // Posts of one window fail together: count them once.
        if self.failed_at.is_some_and(|failed_at| begun_at < failed_at) {
            return;
        }
        self.failed_at = Some(now);
        self.failures = self.failures.saturating_add(1);
        let doublings = self.failures.checked_sub(PAUSING_FROM);
        self.paused_until = doublings.map(|doublings| {
            let pause_length = PAUSE_MIN.saturating_mul(1 << doublings.min(16));
            now.plus(pause_length.min(PAUSE_MAX))
        });
    }

    /// Pauses a worker that failed, or found nothing although posts are due.
    pub(crate) fn pause(&mut self, until: Timestamp) {
        self.paused_until = Some(until);
    }

    /// Pauses at the receiver's request, or after an outcome that the store refused. Answers to posts in progress do
    /// not shorten this pause.
    pub(crate) fn pause_at_least(&mut self, until: Timestamp) {
        self.paused_at_least_until = self.paused_at_least_until.max(Some(until));
    }

    /// Drops all pauses after the clock was set back: they would last too long.
    pub(crate) fn clear_times(&mut self) {
        (self.failed_at, self.paused_until, self.paused_at_least_until) = (None, None, None);
    }

    /// End of the pause, before which nothing is posted; `None` without a pause.
    pub(crate) fn resumes_at(&self) -> Option<Timestamp> {
        self.paused_until.max(self.paused_at_least_until)
    }

    pub(crate) fn is_paused(&self, now: Timestamp) -> bool {
        self.resumes_at().is_some_and(|resumes_at| resumes_at > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(0);

    #[test]
    fn the_window_grows_with_successes_and_one_failure_resets_it() {
        let mut pacing = Pacing::new(8);
        assert_eq!(pacing.window(), 1);
        for _ in 0..20 {
            pacing.record_success();
        }
        assert_eq!(pacing.window(), 8);
        pacing.record_failure(NOW, NOW);
        assert_eq!(pacing.window(), 1);
        assert!(!pacing.is_failing() && !pacing.is_paused(NOW));
        pacing.record_failure(NOW, NOW);
        pacing.record_failure(NOW, NOW);
        assert!(pacing.is_failing());
        pacing.record_success();
        assert!(!pacing.is_failing());
    }

    #[test]
    fn failures_in_a_row_begin_pauses_that_grow_to_their_limit() {
        let mut pacing = Pacing::new(8);
        let mut pauses = Vec::new();
        for _ in 0..15 {
            pacing.record_failure(NOW, NOW);
            pauses.push(pacing.resumes_at().map(|at| at.since(NOW)));
        }
        assert_eq!(pauses[..4], [None; 4]);
        assert_eq!(pauses[4], Some(PAUSE_MIN));
        assert_eq!(pauses[5], Some(PAUSE_MIN * 2));
        assert_eq!(pauses[14], Some(PAUSE_MAX));
        pacing.record_success();
        assert!(!pacing.is_paused(NOW));
    }

    #[test]
    fn failures_of_one_window_count_once() {
        let mut pacing = Pacing::new(8);
        let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
        for second in 0..8 {
            pacing.record_failure(at(0), at(15 + second));
        }
        assert!(!pacing.is_failing());
        pacing.record_failure(at(30), at(45));
        pacing.record_failure(at(45), at(60));
        assert!(pacing.is_failing());
    }

    #[test]
    fn a_requested_pause_is_not_shortened_by_other_answers() {
        let mut pacing = Pacing::new(8);
        let until = NOW.plus(Duration::from_mins(1));
        pacing.pause_at_least(until);
        pacing.pause_at_least(NOW);
        pacing.record_success();
        pacing.record_failure(NOW, NOW);
        assert!(pacing.is_paused(NOW) && !pacing.is_paused(until));
    }
}
