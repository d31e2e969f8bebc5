//! Corrections after the clock was ahead and came back, so that messages do not wait for the wrong time. Runs when the
//! clock is seen to go back, and at start. Retries after a failure.

use std::sync::Arc;
use std::time::Duration;

use postroad_store::StoreError;

use super::EngineShared;
use super::resolve::HORIZON;
use crate::schedule::Entry;

/// Pauses before each round of corrections. Several rounds, because operations in progress may still store times of
/// the old clock.
const CORRECTION_PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(10), Duration::from_mins(1)];
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

impl EngineShared {
    /// Call this when the clock went back by `by`.
    pub(crate) fn clock_went_back(self: &Arc<Self>, by: Duration) {
        tracing::warn!(seconds = by.as_secs(), "the clock went back; correcting due times");
        let due_later = self.with(|schedule, now| schedule.clock_went_back(by, now, now));
        self.correct_queue(due_later);
    }

    /// Releases the entries `due_later`, whose due times come from the old clock. Then corrects the stored queue, now and
    /// several times within the next minute.
    pub(crate) fn correct_queue(self: &Arc<Self>, mut due_later: Vec<Entry>) {
        self.preparer.forget_domains();
        let shared = Arc::clone(self);
        self.spawn(async move {
            for pause in CORRECTION_PAUSES {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = shared.stopped() => return,
                }
                due_later.extend(shared.with(|schedule, now| {
                    schedule.clock_went_back(Duration::ZERO, now.plus(HORIZON + Duration::from_mins(1)), now)
                }));
                for entry in due_later.drain(..) {
                    shared.release_later(entry.key());
                }
                while let Err(error) = shared.correct_due_times().await {
                    tracing::warn!(%error, "correcting due times after the clock went back failed; retrying");
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
        let changed = self.store.bring_due_times_back(self.settings.retry.pause_max()).await?;
        if changed > 0 {
            tracing::info!(messages = changed, "due times corrected after the clock went back");
        }
        Ok(())
    }
}
