//! Clock that only a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use postroad_model::{Clock, Timestamp};

/// Clones share the time, so a test keeps one and gives the other to the service.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub fn at(moment: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(moment.as_micros())))
    }

    pub fn set(&self, moment: Timestamp) {
        self.0.store(moment.as_micros(), Ordering::SeqCst);
    }

    pub fn advance(&self, duration: Duration) {
        self.0.fetch_add(duration.as_micros() as i64, Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    /// Starts at 2026-11-15T00:00:00Z: after the id generator's epoch, the same in every run.
    fn default() -> Self {
        Self::at(Timestamp::from_micros(1_794_700_800_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_move_together() {
        let clock = ManualClock::default();
        let seen_by_service: Arc<dyn Clock> = Arc::new(clock.clone());
        assert_eq!(seen_by_service.now().to_rfc3339(), "2026-11-15T00:00:00Z");
        clock.advance(Duration::from_millis(1_500));
        assert_eq!(seen_by_service.now().to_rfc3339(), "2026-11-15T00:00:01.5Z");
        clock.set(Timestamp::from_micros(0));
        assert_eq!(seen_by_service.now().as_micros(), 0);
    }
}
