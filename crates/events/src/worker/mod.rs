//! The outbox worked off. A dispatcher looks what is due and starts a lane for each endpoint that has something to be
//! told; lanes know nothing of each other, so that one that hangs delays only itself.
//!
//! Posts under way have places (`places.rs`) that those who fail cannot take from the others, nor one server from
//! another.

mod lane;
mod places;
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
use lane::Lane;
use places::{Class, Places};
use settler::Settler;

/// Other nodes append events too, and nobody tells of those.
const POLL: Duration = Duration::from_secs(1);
/// Between two looks at what is due, however much happens.
const SCAN_PAUSE_MIN: Duration = Duration::from_millis(10);
/// After a look that failed.
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);
/// Something is due and cannot be had: another node works on it.
const EMPTY_REST: Duration = Duration::from_secs(1);
/// Without a success for so long, whatever this process has seen of it.
const FAILING_AFTER: Duration = Duration::from_mins(1);
/// Endpoints whose pace is remembered while they have nothing to be told.
const PACINGS_MAX: usize = 100_000;

/// What all lanes share.
#[derive(Debug)]
struct Shared {
    store: Store,
    clock: Arc<dyn Clock>,
    poster: Poster,
    settler: Settler,
    settings: WebhookSettings,
    places: Places,
}

impl Shared {
    /// One that failed a moment ago is not yet among the failing, where it could wait
    /// long.
    fn class_of(&self, webhook: &Webhook, is_failing: bool) -> Class {
        let failing_for = webhook.failing_since.map(|since| self.clock.now().since(since));
        if is_failing || failing_for.is_some_and(|failing_for| failing_for >= FAILING_AFTER) {
            Class::Failing
        } else if webhook.last_success_at.is_some() {
            Class::Proven
        } else {
            Class::New
        }
    }
}

type Key = (ServerId, WebhookId);

/// The pace of one endpoint, kept from lane to lane.
#[derive(Debug, Clone)]
struct SharedPacing(Arc<Mutex<Pacing>>);

impl SharedPacing {
    fn lock(&self) -> MutexGuard<'_, Pacing> {
        self.0.lock()
    }
}

pub(crate) async fn run(
    store: Store,
    clock: Arc<dyn Clock>,
    poster: Poster,
    settings: WebhookSettings,
    stopping: watch::Receiver<bool>,
) {
    let (settler, settling) = Settler::start(store.clone());
    let shared = Arc::new(Shared {
        store,
        clock,
        poster,
        settler,
        places: Places::new(settings.concurrency_max),
        settings,
    });
    Dispatcher { shared, lanes: JoinSet::new(), paces: HashMap::new() }.run(stopping).await;
    // Every lane is over, and with the last of them the settler's channel: it writes what it has and ends.
    drop(settling.await);
}

struct Dispatcher {
    shared: Arc<Shared>,
    lanes: JoinSet<Key>,
    paces: HashMap<Key, Pace>,
}

struct Pace {
    pacing: SharedPacing,
    has_lane: bool,
}

impl Dispatcher {
    async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        let mut told = self.shared.store.told();
        let mut watch = ClockWatch::new(self.shared.clock.now());
        let mut put_right_at: Vec<Instant> = Vec::new();
        if self.shared.store.is_clock_behind() {
            put_right_at = looks_from(Instant::now());
        }
        loop {
            if watch.went_back(self.shared.clock.now()).is_some() {
                self.paces.values().for_each(|pace| pace.pacing.lock().forget_times());
                put_right_at = looks_from(Instant::now());
            }
            if put_right_at.first().is_some_and(|at| *at <= Instant::now()) {
                let pauses = self.shared.settings.retry.pauses_max();
                match self.shared.store.pull_webhooks_back(pauses).await {
                    Ok(0) => drop(put_right_at.remove(0)),
                    Ok(events) => {
                        tracing::info!(
                            events,
                            "due times of webhook events corrected after the clock went back"
                        );
                        put_right_at.remove(0);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "correcting due times of webhook events failed; retrying");
                    }
                }
            }
            told.mark_unchanged();
            let begun = Instant::now();
            let patience = match self.shared.store.list_due_webhooks().await {
                Ok(due) => self.start_lanes(&due, &stopping),
                Err(error) => {
                    tracing::warn!(%error, "reading webhook events failed; retrying");
                    TROUBLE_PAUSE
                }
            };
            // A look that takes long is taken less often.
            let pause = SCAN_PAUSE_MIN.max(begun.elapsed() * 2);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stopping.wait_for(|stop| *stop) => break,
            }
            tokio::select! {
                _ = told.changed() => {}
                () = tokio::time::sleep(patience) => {}
                Some(ended) = self.lanes.join_next() => self.ended(ended.ok()),
                _ = stopping.wait_for(|stop| *stop) => break,
            }
            while let Some(ended) = self.lanes.try_join_next() {
                self.ended(ended.ok());
            }
        }
        while self.lanes.join_next().await.is_some() {}
    }

    /// Returns how long nothing else is due.
    fn start_lanes(&mut self, due: &[WebhookDue], stopping: &watch::Receiver<bool>) -> Duration {
        let now = self.shared.clock.now();
        let mut patience = POLL;
        if self.paces.len() > PACINGS_MAX {
            self.paces.retain(|_, pace| pace.has_lane);
        }
        for due in due {
            let key = (due.server_id, due.webhook_id);
            let window_max = self.shared.settings.concurrency_max;
            let pace = self.paces.entry(key).or_insert_with(|| Pace {
                pacing: SharedPacing(Arc::new(Mutex::new(Pacing::new(window_max)))),
                has_lane: false,
            });
            if pace.has_lane {
                continue;
            }
            let begins_at = due.due_at.max(pace.pacing.lock().resumes_at().unwrap_or(due.due_at));
            if begins_at > now {
                patience = patience.min(begins_at.since(now));
                continue;
            }
            pace.has_lane = true;
            let lane = Lane::new(Arc::clone(&self.shared), key, pace.pacing.clone(), stopping.clone());
            self.lanes.spawn(lane.run());
        }
        patience
    }

    fn ended(&mut self, key: Option<Key>) {
        match key {
            Some(key) => {
                if let Some(pace) = self.paces.get_mut(&key) {
                    pace.has_lane = false;
                }
            }
            // A lane that panicked does not say which it was: all may be started again, and `held` of those that still
            // run is lost to the new ones. At least once is what is promised.
            None => self.paces.values_mut().for_each(|pace| pace.has_lane = false),
        }
    }
}

/// When to look for events that are due too late after the clock went back: what was under way may still come with a time
/// of the old clock.
fn looks_from(now: Instant) -> Vec<Instant> {
    [0, 10, 60].map(|seconds| now + Duration::from_secs(seconds)).to_vec()
}

/// When a lane that found nothing may look again.
fn rest_until(now: Timestamp) -> Timestamp {
    now.plus(EMPTY_REST)
}
