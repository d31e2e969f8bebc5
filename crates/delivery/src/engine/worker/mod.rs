//! Connection tasks: get work, connect, send, settle, repeat.

mod transaction;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postroad_model::{Status, Timestamp};
use postroad_store::{BeginResult, Message, NewDelivery, OTHER_PROVIDER, Outcome, Suppression};

use super::EngineShared;
use super::connect_attempt::{ConnectAttempt, ConnectResult};
use crate::attempt::earlier_greylisting::{DELIVERIES_MAX, greylisting_after};
use crate::attempt::report::{FailedConnection, report_failed_connection};
use crate::attempt::settle::Settlement;
use crate::attempt::{ConnectFailure, Connection, Ending, Peer};
use crate::prepare::LoadedMessage;
use crate::providers::Provider;
use crate::route::{RouteKind, Security};
use crate::schedule::{EndedWhile, Entry, Greylisting, Job, Next, WorkRequest};

/// Suppressed messages are held for this long.
const HELD_FOR: Duration = Duration::from_hours(7 * 24);
/// Pause after the store failed to mark or return a message.
pub(super) const STORE_PAUSE: Duration = Duration::from_secs(1);

/// The life of one connection task.
pub(super) async fn run_connection_task(shared: Arc<EngineShared>, path: usize, attempt: u64) {
    // The guard reports the end even if the task panics: a closed connection must not be counted forever.
    let was_connected = Arc::new(AtomicBool::new(false));
    let mut guard = ConnectionGuard {
        shared: Arc::clone(&shared),
        path,
        ended_while: EndedWhile::Working,
        was_connected: Arc::clone(&was_connected),
    };
    let connecting = Some(ConnectAttempt::with_id(&shared, path, attempt));
    let mut worker = Worker { shared, path, connecting, open: None, was_connected };
    guard.ended_while = worker.run().await;
    if let Some(open) = worker.open.take() {
        open.connection.quit().await;
    }
}

/// Reports the end of the connection to the schedule when dropped.
struct ConnectionGuard {
    shared: Arc<EngineShared>,
    path: usize,
    ended_while: EndedWhile,
    was_connected: Arc<AtomicBool>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let was_connected = self.was_connected.load(Ordering::Relaxed);
        self.shared.with(|schedule, now| schedule.on_closed(self.path, self.ended_while, was_connected, now));
    }
}

struct Worker {
    shared: Arc<EngineShared>,
    path: usize,
    /// The task's first attempt to connect, until its first message needs a connection.
    connecting: Option<ConnectAttempt>,
    open: Option<OpenConnection>,
    /// Whether this task has, or had, a connection; the schedule knows of it.
    was_connected: Arc<AtomicBool>,
}

/// A connection that accepts messages.
struct OpenConnection {
    connection: Connection,
    since: Timestamp,
    /// Number of messages that this connection has carried, refused ones included.
    carried: u32,
    /// The provider's limits.
    rules: Arc<Provider>,
}

/// Next step after a job.
enum NextStep {
    Continue,
    /// The connection task ends.
    EndTask,
}

impl Worker {
    async fn run(&mut self) -> EndedWhile {
        let mut request = WorkRequest::First;
        loop {
            if self.is_used_up() {
                return if request == WorkRequest::AfterWait {
                    EndedWhile::Woken
                } else {
                    EndedWhile::Working
                };
            }
            match self.shared.next(self.path, request) {
                Next::Close => return EndedWhile::Working,
                Next::Wait => {
                    if !self.wait().await {
                        return EndedWhile::Waiting;
                    }
                    request = WorkRequest::AfterWait;
                }
                Next::Job(job) => {
                    let key = job.entry.key();
                    self.shared.note_being_sent(key, &job.route.site);
                    let next_step = self.deliver(*job).await;
                    if let NextStep::EndTask = next_step {
                        return EndedWhile::Working;
                    }
                    request = WorkRequest::Again;
                }
            }
        }
    }

    /// Waits for work; `false` if the task should end instead.
    async fn wait(&mut self) -> bool {
        let Some(open) = &mut self.open else { return false };
        let waker = self.shared.waker(self.path);
        tokio::select! {
            permit = waker.acquire() => {
                // The permit is consumed, so that it wakes only one connection.
                permit.map(tokio::sync::SemaphorePermit::forget).is_ok()
            }
            () = self.shared.stopped() => false,
            () = open.connection.wait_while_idle() => {
                self.open = None;
                false
            }
            () = tokio::time::sleep(self.shared.settings.idle_timeout.min(open.rules.idle_max)) => false,
        }
    }

    async fn deliver(&mut self, job: Job) -> NextStep {
        let Some((job, loaded_message)) = self.load(job).await else { return NextStep::Continue };
        if let Some(send_at) = self.postponed_to(&job, &loaded_message) {
            self.postpone(job, send_at).await;
            return NextStep::Continue;
        }
        if needs_another_route(&job, &loaded_message) {
            self.return_quota(&job);
            if let Some(entry) = self.unbegin(job.entry).await {
                let entry = Entry { loaded_message: Some(loaded_message), ..entry };
                let require_tls = true;
                self.shared.with(|schedule, now| schedule.add(job.lane.domain, require_tls, entry, now));
            }
            return NextStep::Continue;
        }
        let started_at = self.shared.clock.now();
        if self.open.is_none() {
            let attempt =
                self.connecting.take().or_else(|| ConnectAttempt::reconnect(&self.shared, self.path));
            let Some(attempt) = attempt else {
                self.put_back(job).await;
                return NextStep::EndTask;
            };
            // An attempt to connect to hosts that do not answer may take minutes: it ends when the message expires.
            let Some(connected) = within(self.time_left(&job), Box::pin(attempt.connect(&job))).await else {
                self.expire(&job, &loaded_message, started_at).await;
                return NextStep::EndTask;
            };
            match connected {
                ConnectResult::Open(connection) => {
                    attempt.report_success(!self.was_connected.swap(true, Ordering::Relaxed));
                    let rules = Arc::clone(&job.route.rules);
                    let since = self.shared.clock.now();
                    self.open = Some(OpenConnection { connection: *connection, since, carried: 0, rules });
                }
                ConnectResult::Failed(failure) => {
                    return self.handle_connect_failure(job, loaded_message, *failure, started_at).await;
                }
                ConnectResult::Aborted => {
                    self.put_back(job).await;
                    return NextStep::EndTask;
                }
            }
        }
        if job.entry.is_expired(self.shared.clock.now()) {
            self.expire(&job, &loaded_message, started_at).await;
            return NextStep::Continue;
        }
        self.transact(job, loaded_message, started_at).await
    }

    /// Time until the message expires.
    fn time_left(&self, job: &Job) -> Option<Duration> {
        job.entry.expires_at.map(|expiry| expiry.since(self.shared.clock.now()))
    }

    async fn expire(&self, job: &Job, loaded_message: &LoadedMessage, started_at: Timestamp) {
        let peer = Peer::default();
        let settlement = self.settlement(
            job,
            loaded_message,
            &peer,
            false,
            started_at,
            String::new(),
            None,
            Ending::Expired,
        );
        self.shared.settle(settlement).await;
    }

    /// Marks the message in the store as about to be sent, and reads it if necessary. `None` if it is not to be sent
    /// now.
    async fn load(&mut self, mut job: Job) -> Option<(Job, Arc<LoadedMessage>)> {
        let shared = Arc::clone(&self.shared);
        if !job.entry.is_begun {
            match shared.begin(&job.entry).await {
                Ok(BeginResult::Go(message)) => {
                    job.entry.is_begun = true;
                    if let Some(message) = message.filter(|_| job.entry.loaded_message.is_none()) {
                        let loaded_message = shared.preparer.take_loaded(*message);
                        shared.with(|schedule, _| {
                            schedule.charge(self.path, job.entry.server_id, loaded_message.size());
                        });
                        job.entry.loaded_message = Some(loaded_message);
                    }
                }
                // Suppressions do not apply to simulator recipients.
                Ok(BeginResult::Suppressed(message, _)) if job.route.is_exempt => {
                    job.entry.is_begun = true;
                    job.entry.loaded_message = Some(shared.preparer.take_loaded(*message));
                }
                Ok(BeginResult::Suppressed(message, suppression)) => {
                    shared.settle(self.hold_suppressed(&job, &message, &suppression)).await;
                    return None;
                }
                Ok(BeginResult::Gone) => {
                    shared.no_longer_being_sent(job.entry.key());
                    self.return_quota(&job);
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%error, "marking or reading a message failed; retrying");
                    shared.no_longer_being_sent(job.entry.key());
                    self.return_quota(&job);
                    shared.release_later(job.entry.key());
                    tokio::time::sleep(STORE_PAUSE).await;
                    return None;
                }
            }
        }
        if std::mem::take(&mut job.entry.was_tried_before_claim) {
            job.entry.greylisting = self.read_earlier_greylisting(&job.entry).await;
        }
        let loaded_message = job.entry.loaded_message.clone()?;
        Some((job, loaded_message))
    }

    /// Greylisting of earlier attempts, read from the delivery records. If they cannot be read, nothing is learned from
    /// the wait of this retry.
    async fn read_earlier_greylisting(&self, entry: &Entry) -> Option<Greylisting> {
        let shared = &self.shared;
        let (server, id) = entry.key();
        match shared.store.list_newest_deliveries(server, id, DELIVERIES_MAX).await {
            Ok(deliveries) => greylisting_after(&deliveries, shared.clock.now()),
            Err(error) => {
                tracing::debug!(%error, message.id = %id, "reading the deliveries of a retry failed; its wait is not learned");
                None
            }
        }
    }

    /// Returns the quota that was taken from the source for a message that was not sent.
    fn return_quota(&self, job: &Job) {
        if let Some(source) = job.counted_source() {
            self.shared.with(|schedule, _| schedule.on_settled(&source, false));
        }
    }

    async fn put_back(&self, job: Job) {
        self.return_quota(&job);
        if let Some(entry) = self.unbegin(job.entry).await {
            self.shared.with(|schedule, now| schedule.put_back(job.lane, entry, now));
        }
    }

    /// `send_at`, if it is in the future because the clock went back after the message became due. An operator may have
    /// released the message before `send_at`, so only entries that are due in the future count.
    fn postponed_to(&self, job: &Job, loaded_message: &LoadedMessage) -> Option<Timestamp> {
        let now = self.shared.clock.now();
        loaded_message.send_at.filter(|send_at| job.entry.due_at > now && *send_at > now)
    }

    async fn postpone(&self, job: Job, send_at: Timestamp) {
        self.return_quota(&job);
        let Some(entry) = self.unbegin(job.entry).await else { return };
        if let Err(error) = self.shared.store.postpone(entry.server_id, entry.message_id, send_at).await {
            tracing::warn!(%error, message.id = %entry.message_id, "rescheduling a message failed; it will be claimed again");
            self.shared.release_later(entry.key());
        }
    }

    /// Marks a message in the store as waiting again, so that it can be cancelled or expire meanwhile. `None` if the
    /// store cannot be reached: then the claim is released as soon as possible.
    async fn unbegin(&self, mut entry: Entry) -> Option<Entry> {
        let (server_id, message_id) = entry.key();
        let result = self.shared.store.unbegin(server_id, message_id).await;
        self.shared.no_longer_being_sent(entry.key());
        if let Err(error) = result {
            tracing::warn!(%error, message.id = %message_id, "returning a message to the schedule failed; it will be claimed again");
            self.shared.release_later(entry.key());
            return None;
        }
        entry.is_begun = false;
        Some(entry)
    }

    fn hold_suppressed(&self, job: &Job, message: &Message, suppression: &Suppression) -> Settlement {
        let now = self.shared.clock.now();
        let details = suppression.hold_details();
        let outcome = Outcome {
            server_id: job.entry.server_id,
            message_id: message.id,
            claimed_due_at: Some(job.entry.due_at),
            counts_as_attempt: false,
            hold_expiry: Some(now.plus(HELD_FOR)),
            keep_claim: false,
            suppress: None,
            transcript: None,
            source_id: None,
            provider: OTHER_PROVIDER.into(),
            retry_source_id: None,
            delivery: NewDelivery::local(now, Status::Held, details),
            event: suppression.held_event(),
        };
        Settlement { outcome: Arc::new(outcome), flight: None, source: job.counted_source(), retry: None }
    }

    /// Whether the connection is closed, too old, or has carried enough messages. Then this task ends, so that other
    /// queues of the same site can connect.
    fn is_used_up(&self) -> bool {
        let now = self.shared.clock.now();
        self.open.as_ref().is_some_and(|open| {
            open.connection.closed().is_some()
                || open.carried >= open.rules.messages_per_connection_max
                // The clock went back, so the connection's age is unknown.
                || open.since > now
                || now.since(open.since)
                    >= self.shared.settings.connection_lifetime.min(open.rules.connection_age_max)
        })
    }

    /// No host accepts messages. If the receiver accepts no connection at the moment, the message was not offered, and
    /// waits. Otherwise the message gets a failed attempt, and the path pauses, so that the messages behind it wait.
    async fn handle_connect_failure(
        &mut self,
        job: Job,
        loaded_message: Arc<LoadedMessage>,
        failure: ConnectFailure,
        started_at: Timestamp,
    ) -> NextStep {
        if failure.was_stopped {
            self.release(&job).await;
            return NextStep::EndTask;
        }
        let failed = FailedConnection {
            problem: &failure.problem,
            class: failure.class,
            reply: failure.reply.as_ref(),
            was_tried: failure.was_tried,
            was_dns_busy: failure.was_dns_busy,
            was_connected: self.was_connected.load(Ordering::Relaxed),
        };
        let must_wait = self
            .shared
            .with(|schedule, now| report_failed_connection(schedule, self.path, &job, failed, now));
        if must_wait {
            self.put_back(job).await;
            return NextStep::EndTask;
        }
        self.settle_unreachable(&job, &loaded_message, failure, started_at).await
    }

    /// Releases a message whose attempt ended without an outcome: the service is stopping, or the journal cannot be
    /// written.
    async fn release(&self, job: &Job) {
        self.shared.no_longer_being_sent(job.entry.key());
        self.return_quota(job);
        if let Err(error) = self.shared.store.release_claims(vec![job.entry.key()]).await {
            tracing::warn!(%error, "releasing a claim failed; retrying");
            self.shared.release_later(job.entry.key());
        }
    }
}

/// Runs `future`; `None` if `time_left` is over first.
async fn within<T>(time_left: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match time_left {
        Some(left) => tokio::time::timeout(left, future).await.ok(),
        None => Some(future.await),
    }
}

/// Whether the message requires TLS and its route does not: the requirement was not known before the message was read.
fn needs_another_route(job: &Job, loaded_message: &LoadedMessage) -> bool {
    let leaves_machine = matches!(job.route.kind, RouteKind::Mx | RouteKind::SmartHost);
    let is_tls_required = matches!(job.route.security, Security::Verified { .. } | Security::Implicit);
    leaves_machine && loaded_message.send.info.options.require_tls && !is_tls_required
}
