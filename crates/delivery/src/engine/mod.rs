//! The running engine: the schedule behind a lock, and the tasks around it.
//!
//! Outcomes that cannot be stored stop all sending until they can. A store that cannot be read only delays messages. If
//! a task panics, its message is found again after a restart.

mod begin;
mod clock_back;
mod connect_attempt;
mod expiry;
mod feeder;
mod flight;
mod intake;
mod late;
mod provider_notes;
mod recover;
mod resolve;
mod settler;
mod worker;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use postroad_model::{Clock, ClockWatch, MessageId, ServerId, Timestamp};
use postroad_store::{ClaimedEntry, SetupMark, Store, StoreError};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc, watch};

pub(crate) use begin::BeginBatcher;
pub(crate) use expiry::run_expiry;
pub(crate) use feeder::{Feeder, apply_changes, read_setup};
pub(crate) use intake::Intake;
pub(crate) use late::run_late_records;
pub(crate) use provider_notes::ProviderNotes;
pub(crate) use recover::recover;
pub(crate) use settler::Settler;

use crate::attempt::settle::Settlement;
use crate::attempt::{Connector, Router};
use crate::journal::Journal;
use crate::prepare::Preparer;
use crate::schedule::{Action, Entry, Next, PauseCause, Schedule, Shortage, WorkRequest};
use crate::settings::Settings;
use intake::IntakeLimitsCopy;

/// Pause before sending is tried again after the journal could not be written.
const JOURNAL_PAUSE: Duration = Duration::from_secs(5);

/// State shared by all tasks of the engine.
#[derive(Debug)]
pub(crate) struct EngineShared {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) router: Router,
    pub(crate) connector: Connector,
    pub(crate) preparer: Preparer,
    pub(crate) journal: Arc<Journal>,
    provider_notes: ProviderNotes,
    schedule: Mutex<Schedule>,
    intake_limits: IntakeLimitsCopy,
    /// Messages that connections are sending, each with its site.
    being_sent: Mutex<HashMap<(ServerId, MessageId), String>>,
    /// Wakes idle connections, by path: each permit wakes one.
    wakers: Mutex<HashMap<usize, Arc<Semaphore>>>,
    /// Connection attempts by number; notified to abort when other sites or servers need the connection.
    attempts: Mutex<HashMap<u64, Arc<Notify>>>,
    /// Whether sites or servers wait for connections that others use.
    shortage: watch::Sender<Shortage>,
    begins: mpsc::Sender<begin::Request>,
    settlements: mpsc::Sender<Settlement>,
    /// Claims that the feeder releases in its next round, as soon as the store can be reached.
    postponed_releases: Mutex<Vec<(ServerId, MessageId)>>,
    /// Mark up to which changes of servers have been read; locked while the setup is read.
    setup_mark: tokio::sync::Mutex<Option<SetupMark>>,
    /// Value of `Store::changes` right before the last read of the setup. This process's changes up to that value are
    /// in effect.
    changes_in_effect: AtomicU64,
    /// Wakes the timer task early.
    timer: Notify,
    /// Time in microseconds when the timer task wakes by itself.
    timer_set_for: AtomicI64,
    runtime: Handle,
    /// Messages whose last bytes were sent and whose final reply is not handled yet.
    pub(crate) awaiting_reply: Arc<flight::AwaitingReply>,
    stopping: watch::Sender<bool>,
    /// Each working task holds a clone; the last one to end closes the channel.
    alive: Mutex<Option<mpsc::Sender<()>>>,
}

/// Parts of [`EngineShared`] that its creator supplies.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) router: Router,
    pub(crate) connector: Connector,
    pub(crate) preparer: Preparer,
    pub(crate) journal: Arc<Journal>,
    pub(crate) provider_notes: ProviderNotes,
    pub(crate) shortage: watch::Sender<Shortage>,
    pub(crate) begins: mpsc::Sender<begin::Request>,
    pub(crate) settlements: mpsc::Sender<Settlement>,
    pub(crate) stopping: watch::Sender<bool>,
    pub(crate) alive: mpsc::Sender<()>,
}

impl EngineShared {
    pub(crate) fn new(parts: Parts) -> Self {
        let settings = &parts.settings;
        let schedule = Schedule::new(
            settings.retry.pauses().to_vec(),
            settings.hostname.as_str().to_owned(),
            settings.warm_up.clone(),
            settings.connections_max,
            settings.messages_max,
        );
        Self {
            settings: parts.settings,
            store: parts.store,
            clock: parts.clock,
            router: parts.router,
            connector: parts.connector,
            preparer: parts.preparer,
            journal: parts.journal,
            provider_notes: parts.provider_notes,
            schedule: Mutex::new(schedule),
            intake_limits: IntakeLimitsCopy::default(),
            being_sent: Mutex::default(),
            wakers: Mutex::default(),
            attempts: Mutex::default(),
            shortage: parts.shortage,
            begins: parts.begins,
            settlements: parts.settlements,
            postponed_releases: Mutex::default(),
            setup_mark: tokio::sync::Mutex::default(),
            changes_in_effect: AtomicU64::new(0),
            timer: Notify::new(),
            timer_set_for: AtomicI64::new(i64::MAX),
            runtime: Handle::current(),
            awaiting_reply: Arc::default(),
            stopping: parts.stopping,
            alive: Mutex::new(Some(parts.alive)),
        }
    }

    /// Runs `work` on the schedule, then performs the resulting actions.
    pub(crate) fn with<T>(self: &Arc<Self>, work: impl FnOnce(&mut Schedule, Timestamp) -> T) -> T {
        let now = self.clock.now();
        let (result, actions, expired, wakeup, shortage) = {
            let mut schedule = self.schedule();
            let result = work(&mut schedule, now);
            let shortage = schedule.shortage();
            if let Some(limits) = schedule.take_intake_limits() {
                self.intake_limits.replace(limits);
            }
            (result, schedule.take_actions(), schedule.take_expired(), schedule.next_wakeup(), shortage)
        };
        if *self.shortage.borrow() != shortage {
            self.shortage.send_replace(shortage);
        }
        for action in actions {
            self.perform(action);
        }
        if !expired.is_empty() {
            self.settle_expired(expired);
        }
        if let Some(wakeup) = wakeup
            && wakeup.as_micros() < self.timer_set_for.load(Ordering::Relaxed)
        {
            self.timer_set_for.store(wakeup.as_micros(), Ordering::Relaxed);
            self.timer.notify_one();
        }
        result
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock()
    }

    /// Runs a query on the schedule, without performing actions.
    pub(crate) fn query<T>(&self, query: impl FnOnce(&mut Schedule, Timestamp) -> T) -> T {
        let now = self.clock.now();
        query(&mut self.schedule(), now)
    }

    fn perform(self: &Arc<Self>, action: Action) {
        match action {
            Action::Wake { path } => self.waker(path).add_permits(1),
            Action::AbortAttempt { attempt } => self.abort_attempt(attempt),
            Action::Open { path, attempt } => {
                self.spawn(worker::run_connection_task(Arc::clone(self), path, attempt));
            }
            Action::Resolve { lane, key, server } => {
                self.spawn(resolve::resolve(Arc::clone(self), lane, key, server));
            }
        }
    }

    /// Spawns a task. The settler ends only after all these tasks have ended. Starts nothing once the engine is
    /// stopping.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let alive = self.alive.lock().clone();
        if let Some(alive) = alive {
            self.runtime.spawn(async move {
                task.await;
                drop(alive);
            });
        }
    }

    pub(crate) fn waker(&self, path: usize) -> Arc<Semaphore> {
        let mut wakers = self.wakers.lock();
        Arc::clone(wakers.entry(path).or_insert_with(|| Arc::new(Semaphore::new(0))))
    }

    pub(crate) fn next(self: &Arc<Self>, path: usize, request: WorkRequest) -> Next {
        self.with(|schedule, now| schedule.next(path, request, now))
    }

    /// Adds entries that this node has claimed.
    pub(crate) fn add_claimed(self: &Arc<Self>, claimed: Vec<ClaimedEntry>) {
        self.with(|schedule, now| {
            for entry in claimed {
                let domain = entry.domain.clone();
                // Whether the message requires TLS is known once it is read (`needs_another_route`).
                let require_tls = false;
                schedule.add(domain, require_tls, bare_entry(&entry), now);
            }
        });
    }

    pub(crate) fn note_being_sent(&self, key: (ServerId, MessageId), site: &str) {
        self.being_sent().insert(key, site.to_owned());
    }

    pub(crate) fn no_longer_being_sent(&self, key: (ServerId, MessageId)) {
        self.being_sent().remove(&key);
    }

    pub(crate) fn being_sent(&self) -> MutexGuard<'_, HashMap<(ServerId, MessageId), String>> {
        self.being_sent.lock()
    }

    /// Pauses sending: without journal marks a delivered message could be sent again after a crash. Sending is tried
    /// again soon.
    pub(crate) fn pause_for_journal(self: &Arc<Self>) {
        let reason = "the flight journal cannot be written (is the disk full?)".to_owned();
        self.with(|schedule, _| schedule.pause(PauseCause::Journal, reason));
        let shared = Arc::clone(self);
        self.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(JOURNAL_PAUSE) => {
                    shared.with(|schedule, now| schedule.resume(PauseCause::Journal, now));
                }
                () = shared.stopped() => {}
            }
        });
    }

    /// Releases the claim in the feeder's next round, as soon as the store can be reached, whether or not the message
    /// was marked as begun. Then the message is claimed again.
    pub(crate) fn release_later(&self, key: (ServerId, MessageId)) {
        self.postponed_releases.lock().push(key);
    }

    /// Releases the claims of `release_later`.
    pub(crate) async fn release_postponed(&self) -> Result<(), StoreError> {
        let keys = std::mem::take(&mut *self.postponed_releases.lock());
        if keys.is_empty() {
            return Ok(());
        }
        let released = self.store.release_claims(keys.clone()).await;
        if released.is_err() {
            for key in keys {
                self.release_later(key);
            }
        }
        released
    }

    pub(crate) async fn settle(&self, settlement: Settlement) {
        if self.settlements.send(settlement).await.is_err() {
            tracing::error!(
                "outcome came after the engine stopped and is not stored; the next start settles or claims its message again"
            );
        }
    }

    /// Completes when the engine stops.
    pub(crate) async fn stopped(&self) {
        // The sender is part of this value, so the wait cannot fail.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Stores the pacing notes for the next process and for other nodes.
    pub(crate) async fn save_pacing_notes(&self) -> Result<(), StoreError> {
        let notes = self.query(Schedule::take_pacing_notes);
        if notes.is_empty() { Ok(()) } else { self.store.save_pacing_notes(notes).await }
    }

    /// Starts no new work. Returns the waiting entries, to be released. Messages whose last bytes were sent may finish.
    pub(crate) fn begin_stop(self: &Arc<Self>) -> Vec<Entry> {
        let waiting = self.schedule().stop();
        let _ = self.stopping.send(true);
        self.alive.lock().take();
        waiting
    }

    pub(crate) async fn release_entries(&self, waiting: Vec<Entry>) {
        let keys: Vec<_> = waiting.iter().map(Entry::key).collect();
        for keys in keys.chunks(1_000) {
            if let Err(error) = self.store.release_claims(keys.to_vec()).await {
                tracing::warn!(%error, "releasing claims failed; messages are claimed again after the restart");
                break;
            }
        }
    }

    /// Completes when no message whose last bytes were sent awaits its final reply any more.
    pub(crate) async fn wait_for_final_replies(&self) {
        loop {
            let mut none_left = std::pin::pin!(self.awaiting_reply.none_left.notified());
            none_left.as_mut().enable();
            if self.awaiting_reply.count.load(Ordering::Acquire) == 0 {
                return;
            }
            none_left.await;
        }
    }

    /// Runs `work`; `None` if the engine stops first.
    pub(crate) async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.stopped() => None,
        }
    }

    /// Advances the schedule's time.
    pub(crate) async fn run_timer(self: Arc<Self>) {
        // A clock that tests move wakes no sleeping task, so the time is read at least this often.
        const CLOCK_READ_INTERVAL_MAX: Duration = Duration::from_millis(200);
        let mut clock_watch = ClockWatch::new(self.clock.now());
        loop {
            let now = self.clock.now();
            if let Some(by) = clock_watch.detect_step_back(now) {
                self.clock_went_back(by);
            }
            let wakeup = self.query(|schedule, _| schedule.next_wakeup());
            let pause =
                wakeup.map_or(CLOCK_READ_INTERVAL_MAX, |at| at.since(now).min(CLOCK_READ_INTERVAL_MAX));
            self.timer_set_for.store(now.plus(pause).as_micros(), Ordering::Relaxed);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.timer.notified() => continue,
            }
            self.timer_set_for.store(i64::MAX, Ordering::Relaxed);
            self.with(Schedule::tick);
        }
    }
}

/// The schedule's entry of a claimed message, without the message itself.
fn bare_entry(claimed: &ClaimedEntry) -> Entry {
    Entry {
        server_id: claimed.server_id,
        message_id: claimed.message_id,
        due_at: claimed.due_at,
        expires_at: claimed.expires_at,
        attempts: claimed.attempts,
        chosen_pool: claimed.pool_id,
        source: claimed.source_id,
        greylisting: None,
        delay_notice_at: None,
        was_tried_before_claim: claimed.attempts > 0,
        was_aborted: false,
        is_begun: false,
        loaded_message: None,
    }
}
