//! Corrections after the clock was ahead and came back, so that messages do not wait for the wrong time. Runs when the
//! clock is seen to go back, and at start if the clock is behind an earlier reading. Retries after a failure.

use std::sync::Arc;
use std::time::Duration;

use postroad_store::StoreError;

use super::EngineShared;
use super::resolve::HORIZON;
use crate::schedule::Entry;

/// The pause before each round of corrections. Several rounds, because operations in progress may still store times of
/// the old clock.
const CORRECTION_PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(10), Duration::from_mins(1)];
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

impl EngineShared {
    /// Call this when the clock went back by `by`.
    pub(crate) fn clock_went_back(self: &Arc<Self>, by: Duration) {
        tracing::warn!(seconds = by.as_secs(), "the clock went back; correcting due times");
        let to_release = self.with(|schedule, now| schedule.clock_went_back(by, now));
        self.correct_queue(to_release);
    }

    /// Gives the entries `to_release` back to the store, with all others that are due later than `HORIZON` allows:
    /// their due times come from the old clock. Then corrects the stored due times. Three rounds: now, after 10 s, and
    /// a minute after that.
    pub(crate) fn correct_queue(self: &Arc<Self>, mut to_release: Vec<Entry>) {
        self.preparer.forget_domains();
        let shared = Arc::clone(self);
        self.spawn(async move {
            for pause in CORRECTION_PAUSES {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = shared.stopped() => return,
                }
                to_release.extend(shared.with(|schedule, now| {
                    schedule.take_due_after(now.plus(HORIZON + Duration::from_mins(1)))
                }));
                for entry in to_release.drain(..) {
                    shared.release_later(entry.key());
                }
                while let Err(error) = shared.correct_due_times().await {
                    tracing::warn!(%error, "the clock went back, and due times could not be corrected; retrying");
                    tokio::select! {
                        () = tokio::time::sleep(TRY_AGAIN_AFTER) => {}
                        () = shared.stopped() => return,
                    }
                }
            }
        });
    }

    async fn correct_due_times(&self) -> Result<(), StoreError> {
        self.release_postponed().await?;
        let changed = self.store.correct_due_times(self.settings.retry.pause_max()).await?;
        if changed > 0 {
            tracing::info!(messages = changed, "due times corrected after the clock went back");
        }
        Ok(())
    }
}
