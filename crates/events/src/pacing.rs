//! How hard one endpoint is worked: slow start while it answers, one at a time and with pauses while it does not.

use std::time::Duration;

use postroad_model::Timestamp;

/// Fewer failures in a row are an accident, not a state.
const FAILURES_OF_THE_FAILING: u32 = 3;
const FAILURES_WITHOUT_PAUSE: u32 = 5;
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(crate) struct Pacing {
    window: usize,
    window_max: usize,
    /// In a row.
    failures: u32,
    /// When the last of them ended.
    failed_at: Option<Timestamp>,
    paused_until: Option<Timestamp>,
    /// The receiver said so.
    asked_until: Option<Timestamp>,
}

impl Pacing {
    pub(crate) fn new(window_max: usize) -> Self {
        Self {
            window: 1,
            window_max: window_max.max(1),
            failures: 0,
            failed_at: None,
            paused_until: None,
            asked_until: None,
        }
    }

    /// How many posts may be under way.
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.failures >= FAILURES_OF_THE_FAILING
    }

    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        self.paused_until = None;
        self.window = (self.window + 1).min(self.window_max);
    }

    /// A dead endpoint with a long queue must not be hammered, and its attempts must not fill the log.
    pub(crate) fn failed(&mut self, begun_at: Timestamp, now: Timestamp) {
        self.window = 1;
        // Those of one window fail together: that is one trouble.
        if self.failed_at.is_some_and(|failed_at| begun_at < failed_at) {
            return;
        }
        self.failed_at = Some(now);
        self.failures = self.failures.saturating_add(1);
        let doublings = self.failures.checked_sub(FAILURES_WITHOUT_PAUSE);
        self.paused_until = doublings.map(|doublings| {
            let pause = PAUSE_MIN.saturating_mul(1 << doublings.min(16));
            now.plus(pause.min(PAUSE_MAX))
        });
    }

    /// Nothing was found although something is due: look again later.
    pub(crate) fn rest(&mut self, until: Timestamp) {
        self.paused_until = Some(until);
    }

    /// The receiver asks for it; what it answers to posts under way does not change that.
    pub(crate) fn rest_as_asked(&mut self, until: Timestamp) {
        self.asked_until = self.asked_until.max(Some(until));
    }

    /// The clock went back: no pause lasts until it says the old time again.
    pub(crate) fn forget_times(&mut self) {
        (self.failed_at, self.paused_until, self.asked_until) = (None, None, None);
    }

    /// Not worked before.
    pub(crate) fn resumes_at(&self) -> Option<Timestamp> {
        self.paused_until.max(self.asked_until)
    }

    pub(crate) fn is_resting(&self, now: Timestamp) -> bool {
        self.resumes_at().is_some_and(|resumes_at| resumes_at > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(0);

    #[test]
    fn it_grows_by_success_and_falls_by_one_failure() {
        let mut pacing = Pacing::new(8);
        assert_eq!(pacing.window(), 1);
        for _ in 0..20 {
            pacing.succeeded();
        }
        assert_eq!(pacing.window(), 8);
        pacing.failed(NOW, NOW);
        assert_eq!(pacing.window(), 1);
        assert!(!pacing.is_failing() && !pacing.is_resting(NOW));
        pacing.failed(NOW, NOW);
        pacing.failed(NOW, NOW);
        assert!(pacing.is_failing());
        pacing.succeeded();
        assert!(!pacing.is_failing());
    }

    #[test]
    fn failures_in_a_row_make_pauses_that_grow_to_their_limit() {
        let mut pacing = Pacing::new(8);
        let mut pauses = Vec::new();
        for _ in 0..15 {
            pacing.failed(NOW, NOW);
            pauses.push(pacing.resumes_at().map(|at| at.since(NOW)));
        }
        assert_eq!(pauses[..4], [None; 4]);
        assert_eq!(pauses[4], Some(PAUSE_MIN));
        assert_eq!(pauses[5], Some(PAUSE_MIN * 2));
        assert_eq!(pauses[14], Some(PAUSE_MAX));
        pacing.succeeded();
        assert!(!pacing.is_resting(NOW));
    }
    #[test]
    fn failures_of_one_window_are_one() {
        let mut pacing = Pacing::new(8);
        let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
        for second in 0..8 {
            pacing.failed(at(0), at(15 + second));
        }
        assert!(!pacing.is_failing());
        pacing.failed(at(30), at(45));
        pacing.failed(at(45), at(60));
        assert!(pacing.is_failing());
    }

    #[test]
    fn rest_that_was_asked_for_outlasts_other_answers() {
        let mut pacing = Pacing::new(8);
        let until = NOW.plus(Duration::from_mins(1));
        pacing.rest_as_asked(until);
        pacing.rest_as_asked(NOW);
        pacing.succeeded();
        pacing.failed(NOW, NOW);
        assert!(pacing.is_resting(NOW) && !pacing.is_resting(until));
    }
}
