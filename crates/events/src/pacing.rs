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
    failures: u32,
    /// Not worked before.
    pub(crate) resumes_at: Option<Timestamp>,
}

impl Pacing {
    pub(crate) fn new(window_max: usize) -> Self {
        Self { window: 1, window_max: window_max.max(1), failures: 0, resumes_at: None }
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
        self.resumes_at = None;
        self.window = (self.window + 1).min(self.window_max);
    }

    /// A dead endpoint with a long queue must not be hammered, and its attempts must not fill the log.
    pub(crate) fn failed(&mut self, now: Timestamp) {
        self.window = 1;
        self.failures = self.failures.saturating_add(1);
        let doublings = self.failures.checked_sub(FAILURES_WITHOUT_PAUSE);
        self.resumes_at = doublings.map(|doublings| {
            let pause = PAUSE_MIN.saturating_mul(1 << doublings.min(16));
            now.plus(pause.min(PAUSE_MAX))
        });
    }

    /// Nothing was found although something is due: look again later.
    pub(crate) fn rest(&mut self, until: Timestamp) {
        self.resumes_at = Some(until);
    }

    pub(crate) fn is_resting(&self, now: Timestamp) -> bool {
        self.resumes_at.is_some_and(|resumes_at| resumes_at > now)
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
        pacing.failed(NOW);
        assert_eq!(pacing.window(), 1);
        assert!(!pacing.is_failing() && !pacing.is_resting(NOW));
        pacing.failed(NOW);
        pacing.failed(NOW);
        assert!(pacing.is_failing());
        pacing.succeeded();
        assert!(!pacing.is_failing());
    }

    #[test]
    fn failures_in_a_row_make_pauses_that_grow_to_their_limit() {
        let mut pacing = Pacing::new(8);
        let mut pauses = Vec::new();
        for _ in 0..15 {
            pacing.failed(NOW);
            pauses.push(pacing.resumes_at.map(|at| at.since(NOW)));
        }
        assert_eq!(pauses[..4], [None; 4]);
        assert_eq!(pauses[4], Some(PAUSE_MIN));
        assert_eq!(pauses[5], Some(PAUSE_MIN * 2));
        assert_eq!(pauses[14], Some(PAUSE_MAX));
        pacing.succeeded();
        assert!(!pacing.is_resting(NOW));
    }
}
