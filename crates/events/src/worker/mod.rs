//! Webhook worker: posts the events in the outbox. A dispatcher finds due posts and starts a worker for each
//! endpoint; workers are independent, so one that hangs does not stop the others.
//!
//! Posts in progress hold permits (`permits.rs`). Failing endpoints cannot take the permits of others, nor can one
//! server take another server's.

mod endpoint_worker;
mod permits;
mod settler;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use postroad_model::{Clock, ClockWatch, ServerId, Timestamp, WebhookId};
use postroad_store::{Store, Webhook, WebhookDue};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::WebhookSettings;
use crate::pacing::Pacing;
use crate::post::Poster;
use endpoint_worker::EndpointWorker;
use permits::{PermitClass, PostPermits};
use settler::Settler;

/// Longest wait for a notice before the next look-up: other nodes add events without notifying this one.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum pause between two look-ups of due posts.
const LOOK_UP_PAUSE_MIN: Duration = Duration::from_millis(10);
/// Pause after a failed look-up.
const LOOK_UP_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Pause of a worker that failed, or that found nothing because another node holds the due posts.
const WORKER_PAUSE: Duration = Duration::from_secs(1);
/// An endpoint that has failed for this long counts as failing, even after fewer than three failures in a row.
const FAILING_AFTER: Duration = Duration::from_mins(1);
/// Maximum number of endpoints whose pacing is remembered while they have no posts.
const PACINGS_MAX: usize = 100_000;

/// State shared by all workers.
#[derive(Debug)]
struct WorkerShared {
    store: Store,
    clock: Arc<dyn Clock>,
    poster: Poster,
    settler: Settler,
    settings: WebhookSettings,
    permits: PostPermits,
}

impl WorkerShared {
    /// Class of an endpoint. An endpoint counts as failing after three failures in a row (`is_failing`), or a minute
    /// after its first failure. A single failure is not enough, because posts to failing endpoints may wait long for a
    /// permit.
    fn class_of(&self, webhook: &Webhook, is_failing: bool) -> PermitClass {
        let failing_for = webhook.failing_since.map(|since| self.clock.now().since(since));
        if is_failing || failing_for.is_some_and(|failing_for| failing_for >= FAILING_AFTER) {
            PermitClass::Failing
        } else if webhook.last_success_at.is_some() {
            PermitClass::Proven
        } else {
            PermitClass::New
        }
    }
}

/// An endpoint is a webhook of a server.
type EndpointKey = (ServerId, WebhookId);

/// Pacing of one endpoint, kept between workers.
#[derive(Debug, Clone)]
struct SharedPacing(Arc<Mutex<Pacing>>);

impl SharedPacing {
    fn lock(&self) -> MutexGuard<'_, Pacing> {
        self.0.lock()
    }
}

/// Runs the dispatcher until `stopping` is true, then writes the remaining outcomes.
pub(crate) async fn run(
    store: Store,
    clock: Arc<dyn Clock>,
    poster: Poster,
    settings: WebhookSettings,
    stopping: watch::Receiver<bool>,
) {
    let (settler, settler_task) = Settler::start(store.clone());
    let shared = Arc::new(WorkerShared {
        store,
        clock,
        poster,
        settler,
        permits: PostPermits::new(settings.concurrency_max),
        settings,
    });
    Dispatcher { shared, workers: JoinSet::new(), endpoints: HashMap::new() }.dispatch(stopping).await;
    // All workers have ended, which closes the settler's channel: the settler writes the outcomes that still wait, and
    // ends.
    drop(settler_task.await);
}

struct Dispatcher {
    shared: Arc<WorkerShared>,
    workers: JoinSet<EndpointKey>,
    endpoints: HashMap<EndpointKey, EndpointState>,
}

struct EndpointState {
    pacing: SharedPacing,
    has_worker: bool,
}

impl Dispatcher {
    async fn dispatch(mut self, mut stopping: watch::Receiver<bool>) {
        let mut notices = self.shared.store.event_notices();
        let mut watch = ClockWatch::new(self.shared.clock.now());
        let mut corrections_at: Vec<Instant> = Vec::new();
        if self.shared.store.is_clock_behind() {
            corrections_at = correction_times(Instant::now());
        }
        loop {
            if watch.detect_step_back(self.shared.clock.now()).is_some() {
                self.endpoints.values().for_each(|endpoint| endpoint.pacing.lock().clear_times());
                corrections_at = correction_times(Instant::now());
            }
            if corrections_at.first().is_some_and(|at| *at <= Instant::now()) {
                let pauses = self.shared.settings.retry.pauses_max();
                match self.shared.store.correct_webhook_due_times(pauses).await {
                    Ok(0) => drop(corrections_at.remove(0)),
                    Ok(events) => {
                        tracing::info!(
                            events,
                            "due times of webhook events corrected after the clock went back"
                        );
                        corrections_at.remove(0);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "correcting due times of webhook events failed; retrying");
                    }
                }
            }
            notices.mark_unchanged();
            let begun = Instant::now();
            let look_up_in = match self.shared.store.list_due_webhooks().await {
                Ok(due) => self.start_workers(&due, &stopping),
                Err(error) => {
                    tracing::warn!(%error, "reading webhook events failed; retrying");
                    LOOK_UP_RETRY_PAUSE
                }
            };
            // Slow look-ups are made less often.
            let pause = LOOK_UP_PAUSE_MIN.max(begun.elapsed() * 2);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stopping.wait_for(|stop| *stop) => break,
            }
            tokio::select! {
                _ = notices.changed() => {}
                () = tokio::time::sleep(look_up_in) => {}
                Some(ended) = self.workers.join_next() => self.record_worker_end(ended.ok()),
                _ = stopping.wait_for(|stop| *stop) => break,
            }
            while let Some(ended) = self.workers.try_join_next() {
                self.record_worker_end(ended.ok());
            }
        }
        while self.workers.join_next().await.is_some() {}
    }

    /// Starts workers for due posts. Returns the time until the next look-up: until another post is due, at most
    /// `POLL_INTERVAL`.
    fn start_workers(&mut self, due: &[WebhookDue], stopping: &watch::Receiver<bool>) -> Duration {
        let now = self.shared.clock.now();
        let mut look_up_in = POLL_INTERVAL;
        if self.endpoints.len() > PACINGS_MAX {
            self.endpoints.retain(|_, endpoint| endpoint.has_worker);
        }
        for due in due {
            let key = (due.server_id, due.webhook_id);
            let window_max = self.shared.settings.concurrency_max;
            let endpoint = self.endpoints.entry(key).or_insert_with(|| EndpointState {
                pacing: SharedPacing(Arc::new(Mutex::new(Pacing::new(window_max)))),
                has_worker: false,
            });
            if endpoint.has_worker {
                continue;
            }
            let begins_at = due.due_at.max(endpoint.pacing.lock().resumes_at().unwrap_or(due.due_at));
            if begins_at > now {
                look_up_in = look_up_in.min(begins_at.since(now));
                continue;
            }
            endpoint.has_worker = true;
            let worker =
                EndpointWorker::new(Arc::clone(&self.shared), key, endpoint.pacing.clone(), stopping.clone());
            self.workers.spawn(worker.run());
        }
        look_up_in
    }

    fn record_worker_end(&mut self, key: Option<EndpointKey>) {
        match key {
            Some(key) => {
                if let Some(endpoint) = self.endpoints.get_mut(&key) {
                    endpoint.has_worker = false;
                }
            }
            // The key of a panicked worker is unknown, so all endpoints may get a second worker. A second worker does
            // not know the `claimed` events of the first, and may post those events again: delivery is at least once.
            None => self.endpoints.values_mut().for_each(|endpoint| endpoint.has_worker = false),
        }
    }
}

/// When to correct due times after the clock was set back. There are several corrections, because posts in progress may
/// still be stored with a time of the old clock.
fn correction_times(now: Instant) -> Vec<Instant> {
    [0, 10, 60].map(|seconds| now + Duration::from_secs(seconds)).to_vec()
}

/// End of the pause of a worker that failed or found nothing.
fn worker_pause_end(now: Timestamp) -> Timestamp {
    now.plus(WORKER_PAUSE)
}
