//! Writes what waits, in batches.
//!
//! On failure: while the store is away the batch goes back into the queue and is tried again every second. What the store
//! refuses for another reason is a bug of ours: it is told in the log and not tried for ever.

use std::sync::Arc;
use std::time::Duration;

use postroad_app::App;
use postroad_store::StoreError;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::hits::HitQueue;

/// Small enough for the one writer of SQLite not to be held up.
const BATCH: usize = 100;
/// How late a click is noticed to be due.
const TICK: Duration = Duration::from_millis(250);
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// For the last of it when the service stops.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(5);

pub(crate) async fn work(app: App, queue: Arc<HitQueue>, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        if !write_due(&app, &queue, false).await {
            tokio::select! {
                () = sleep(STORE_PAUSE) => {}
                _ = stop.changed() => {}
            }
            continue;
        }
        let is_waiting = queue.len() > 0;
        tokio::select! {
            () = queue.bell.notified(), if !is_waiting => {}
            () = sleep(TICK), if is_waiting => {}
            _ = stop.changed() => {}
        }
    }
    if !timeout(FLUSH_TIME_MAX, write_due(&app, &queue, true)).await.unwrap_or(false) {
        let lost = queue.len();
        tracing::warn!(lost, "clicks and opens could not be written before the end");
    }
}

/// `false` if the store is away.
async fn write_due(app: &App, queue: &HitQueue, everything: bool) -> bool {
    loop {
        let dropped = queue.take_dropped();
        if dropped > 0 {
            tracing::warn!(dropped, "too many clicks and opens wait for the store; the oldest are lost");
        }
        let batch = queue.take(BATCH, app.now(), everything);
        if batch.is_empty() {
            return true;
        }
        match app.record_hits(batch.clone()).await {
            Ok(()) => {}
            Err(StoreError::Unavailable(error)) => {
                tracing::warn!(%error, waiting = queue.len() + batch.len(), "clicks and opens wait for the store");
                queue.put_back(batch);
                return false;
            }
            Err(error) => tracing::error!(%error, lost = batch.len(), "clicks and opens cannot be written"),
        }
    }
}
