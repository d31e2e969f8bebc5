//! Connection tasks: ask for work, connect, send, settle, again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postroad_mail::Signal;
use postroad_model::{BounceClass, Status, Timestamp};
use postroad_smtp::{Phase, SendError, Verdict};
use postroad_store::{Begun, Message, NewDelivery, OTHER_PROVIDER, Outcome, StoreError, Suppression};

use super::EngineShared;
use super::connecting::{Connected, Connecting};
use super::flight::Flight;
use crate::attempt::settle::{Attempt, Settlement, is_put_back, signal_of, signal_of_greeting};
use crate::attempt::{ConnectFailure, Connection, Ending, Peer};
use crate::journal::FlightKey;
use crate::prepare::{PrepareError, Prepared, Signing, Work};
use crate::providers::Provider;
use crate::route::{RouteKind, Security};
use crate::schedule::{Answer, Asking, Entry, Job, Left, Next};

const HELD_FOR: Duration = Duration::from_hours(7 * 24);
/// While connections are short, a host gets this time for a reply in the middle of a message. Then the message makes way for
/// others, unless its site is known not to answer and has its share.
const BUSY_REPLY: Duration = Duration::from_secs(3);
/// After the store failed to give a message.
pub(super) const STORE_PAUSE: Duration = Duration::from_secs(1);
/// Before a message is tried again that the store could not give.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(30);

/// The life of one connection task.
pub(super) async fn work(shared: Arc<EngineShared>, path: usize, attempt: u64) {
    // Also when the task panics: a connection that is gone must not count for ever.
    let was_connected = Arc::new(AtomicBool::new(false));
    let mut guard = ConnectionGuard {
        shared: Arc::clone(&shared),
        path,
        left: Left::Working,
        was_connected: Arc::clone(&was_connected),
    };
    let connecting = Some(Connecting::ordered(&shared, path, attempt));
    let mut worker = Worker { shared, path, connecting, open: None, was_connected };
    guard.left = worker.run().await;
    if let Some(open) = worker.open.take() {
        open.connection.quit().await;
    }
}

/// Tells the schedule, when dropped, that the connection is gone.
struct ConnectionGuard {
    shared: Arc<EngineShared>,
    path: usize,
    left: Left,
    was_connected: Arc<AtomicBool>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let was_connected = self.was_connected.load(Ordering::Relaxed);
        self.shared.with(|schedule, now| schedule.closed(self.path, self.left, was_connected, now));
    }
}

struct Worker {
    shared: Arc<EngineShared>,
    path: usize,
    /// Until a connection is there.
    connecting: Option<Connecting>,
    open: Option<Open>,
    /// The schedule knows that this task has, or had, a connection.
    was_connected: Arc<AtomicBool>,
}

/// A connection that takes messages.
struct Open {
    connection: Connection,
    since: Timestamp,
    carried: u32,
    /// The provider's limits.
    rules: Arc<Provider>,
}

/// Next step after a job.
enum After {
    GoOn,
    Leave,
}

impl Worker {
    async fn run(&mut self) -> Left {
        let mut asking = Asking::First;
        loop {
            if self.is_used_up() {
                return if asking == Asking::AfterWait { Left::Woken } else { Left::Working };
            }
            match self.shared.next(self.path, asking) {
                Next::Close => return Left::Working,
                Next::Wait => {
                    if !self.wait().await {
                        return Left::Waiting;
                    }
                    asking = Asking::AfterWait;
                }
                Next::Job(job) => {
                    let key = job.entry.key();
                    self.shared.note_in_flight(key, &job.route.base_site);
                    let after = self.deliver(*job).await;
                    if let After::Leave = after {
                        return Left::Working;
                    }
                    asking = Asking::Again;
                }
            }
        }
    }

    /// Until there is work; `false` if it is not worth waiting for.
    async fn wait(&mut self) -> bool {
        let Some(open) = &mut self.open else { return false };
        let waker = self.shared.waker(self.path);
        tokio::select! {
            rung = waker.acquire() => {
                // Used up: the next ring is for the next one.
                rung.map(tokio::sync::SemaphorePermit::forget).is_ok()
            }
            () = self.shared.stopped() => false,
            () = open.connection.listen_at_rest() => {
                self.open = None;
                false
            }
            () = tokio::time::sleep(self.shared.settings.idle_timeout.min(open.rules.idle_max)) => false,
        }
    }

    async fn deliver(&mut self, job: Job) -> After {
        let Some((job, work)) = self.load(job).await else { return After::GoOn };
        if let Some(send_at) = self.postponed_to(&job, &work) {
            self.postpone(job, send_at).await;
            return After::GoOn;
        }
        if needs_another_route(&job, &work) {
            self.unused(&job);
            if let Some(entry) = self.take_off_the_wire(job.entry).await {
                let entry = Entry { work: Some(work), ..entry };
                self.shared.with(|schedule, now| schedule.add(job.lane.domain, true, entry, now));
            }
            return After::GoOn;
        }
        let started_at = self.shared.clock.now();
        if self.open.is_none() {
            let attempt =
                self.connecting.take().unwrap_or_else(|| Connecting::again(&self.shared, self.path));
            let connecting = attempt.connect(&job);
            // Hosts that do not answer may take minutes; an expiry is recorded before.
            let connected = match job.entry.expires_at {
                Some(expiry) => tokio::time::timeout(expiry.since(started_at), connecting).await,
                None => Ok(connecting.await),
            };
            let Ok(connected) = connected else {
                self.expire(&job, &work, started_at).await;
                return After::Leave;
            };
            match connected {
                Connected::Open(connection) => {
                    attempt.succeeded(!self.was_connected.swap(true, Ordering::Relaxed));
                    let rules = Arc::clone(&job.route.rules);
                    let since = self.shared.clock.now();
                    self.open = Some(Open { connection: *connection, since, carried: 0, rules });
                }
                Connected::Failed(failure) => return self.strand(job, work, *failure, started_at).await,
                Connected::MadeWay => {
                    self.put_back(job).await;
                    return After::Leave;
                }
            }
        }
        if job.entry.is_expired(self.shared.clock.now()) {
            self.expire(&job, &work, started_at).await;
            return After::GoOn;
        }
        self.transact(job, work, started_at).await
    }

    async fn expire(&self, job: &Job, work: &Work, started_at: Timestamp) {
        let peer = Peer::default();
        let settlement =
            self.judge(job, work, &peer, false, started_at, String::new(), None, Ending::Expired);
        self.shared.settle(settlement).await;
    }

    /// Tells the store that it goes on the wire, and reads it if it is not at hand.
    async fn load(&mut self, mut job: Job) -> Option<(Job, Arc<Work>)> {
        let shared = Arc::clone(&self.shared);
        if !job.entry.begun {
            match shared.begin(&job.entry).await {
                Ok(Begun::Go(message)) => {
                    job.entry.begun = true;
                    if let Some(message) = message.filter(|_| job.entry.work.is_none()) {
                        let work = shared.preparer.take_loaded(*message);
                        shared
                            .with(|schedule, _| schedule.charge(self.path, job.entry.server_id, work.size()));
                        job.entry.work = Some(work);
                    }
                }
                // What simulator recipients play has no consequences for them.
                Ok(Begun::Suppressed(message, _)) if job.route.is_exempt => {
                    job.entry.begun = true;
                    job.entry.work = Some(shared.preparer.take_loaded(*message));
                }
                Ok(Begun::Suppressed(message, suppression)) => {
                    shared.settle(self.held(&job, &message, &suppression)).await;
                    return None;
                }
                Ok(Begun::Gone) => {
                    shared.no_longer_in_flight(job.entry.key());
                    self.unused(&job);
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%error, "reading a message failed; retrying");
                    shared.no_longer_in_flight(job.entry.key());
                    self.unused(&job);
                    shared.give_back_later(job.entry.key());
                    tokio::time::sleep(STORE_PAUSE).await;
                    return None;
                }
            }
        }
        let work = job.entry.work.clone()?;
        Some((job, work))
    }

    /// The source's quota is not used up by what was not sent.
    fn unused(&self, job: &Job) {
        if let Some(source) = job.counted_source() {
            self.shared.with(|schedule, _| schedule.settled(&source, false));
        }
    }

    async fn put_back(&self, job: Job) {
        self.unused(&job);
        if let Some(entry) = self.take_off_the_wire(job.entry).await {
            self.shared.with(|schedule, now| schedule.put_back(job.lane, entry, now));
        }
    }

    /// When its sender wants it sent, if that lies ahead: the clock went back after it had become due. An operator may have
    /// had it sent before, so only those are meant that are due later than now.
    fn postponed_to(&self, job: &Job, work: &Work) -> Option<Timestamp> {
        let now = self.shared.clock.now();
        work.send_at.filter(|send_at| job.entry.due_at > now && *send_at > now)
    }

    async fn postpone(&self, job: Job, send_at: Timestamp) {
        self.unused(&job);
        let Some(entry) = self.take_off_the_wire(job.entry).await else { return };
        if let Err(error) = self.shared.store.postpone(entry.server_id, entry.message_id, send_at).await {
            tracing::warn!(%error, message.id = %entry.message_id, "rescheduling a message failed; it will be claimed again");
            self.shared.give_back_later(entry.key());
        }
    }

    /// Tells the store that a message waits again, so that it can be cancelled and can expire meanwhile. `None` if the store
    /// cannot be told: then the claim goes back to it as soon as it can.
    async fn take_off_the_wire(&self, mut entry: Entry) -> Option<Entry> {
        let (server_id, message_id) = entry.key();
        let told = self.shared.store.unbegin(server_id, message_id).await;
        self.shared.no_longer_in_flight(entry.key());
        if let Err(error) = told {
            tracing::warn!(%error, message.id = %message_id, "returning a message to the schedule failed; it will be claimed again");
            self.shared.give_back_later(entry.key());
            return None;
        }
        entry.begun = false;
        Some(entry)
    }

    fn held(&self, job: &Job, message: &Message, suppression: &Suppression) -> Settlement {
        let now = self.shared.clock.now();
        let details = suppression.sentence();
        let outcome = Outcome {
            server_id: job.entry.server_id,
            message_id: message.id,
            claimed_for: Some(job.entry.due_at),
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

    /// A connection that has carried enough makes room: the next one may belong to others who wait for the same site.
    fn is_used_up(&self) -> bool {
        let now = self.shared.clock.now();
        self.open.as_ref().is_some_and(|open| {
            open.connection.closed().is_some()
                || open.carried >= open.rules.messages_per_connection_max
                // The clock went back: how old it is cannot be told.
                || open.since > now
                || now.since(open.since)
                    >= self.shared.settings.connection_lifetime.min(open.rules.connection_age_max)
        })
    }

    /// No host could be spoken to. If the receiver just takes no connection now, the message was not offered, and waits; else
    /// it learns of it. Those behind it wait for the path.
    async fn strand(
        &mut self,
        job: Job,
        work: Arc<Work>,
        failure: ConnectFailure,
        started_at: Timestamp,
    ) -> After {
        if failure.was_stopped {
            self.give_back(&job).await;
            return After::Leave;
        }
        let reply = failure.reply.as_ref();
        let told = reply.map(|reply| (signal_of_greeting(reply), reply.to_string()));
        let waits = told.is_some_and(|(signal, reason)| {
            let answer = answer(&job, signal, &reason);
            self.shared.with(|schedule, now| schedule.connection_refused(self.path, answer, now))
        });
        if waits {
            self.put_back(job).await;
            return After::Leave;
        }
        if failure.was_dns_busy {
            self.shared.with(|schedule, now| schedule.connect_failed(self.path, failure.problem, now));
            self.put_back(job).await;
            return After::Leave;
        }
        self.shared.with(|schedule, now| {
            // One that refused us holds no connection.
            if failure.was_tried && failure.class == BounceClass::Timeout {
                schedule.note_silence(self.path, now);
            }
            schedule.connect_failed(self.path, failure.problem.clone(), now);
        });
        self.unreachable(&job, &work, failure, started_at).await
    }

    async fn transact(&mut self, job: Job, work: Arc<Work>, started_at: Timestamp) -> After {
        let shared = Arc::clone(&self.shared);
        let goes_by_signature = job.route.rules.feedback_by_dkim;
        let signing = if goes_by_signature { Signing::ForFeedback } else { Signing::Usual };
        let Prepared { message, dkim } = match shared.preparer.outgoing(&work, signing).await {
            Ok(prepared) => prepared,
            Err(PrepareError::Store(error @ StoreError::Unavailable(_))) => {
                tracing::warn!(message.id = %job.entry.message_id, %error, "reading a message failed; retrying soon");
                shared.no_longer_in_flight(job.entry.key());
                self.unused(&job);
                let key = job.entry.key();
                // Not at the head of its lane meanwhile: the others need not wait for it.
                shared.spawn({
                    let shared = Arc::clone(&shared);
                    async move {
                        tokio::select! {
                            () = tokio::time::sleep(UNREADABLE_PAUSE) => {}
                            () = shared.stopped() => {}
                        }
                        shared.give_back_later(key);
                    }
                });
                return After::GoOn;
            }
            Err(error) => {
                tracing::error!(message.id = %job.entry.message_id, %error, "message cannot be sent");
                let ending = Ending::Broken(error.to_string());
                let peer = Peer::default();
                let settlement =
                    self.judge(&job, &work, &peer, false, started_at, String::new(), None, ending);
                shared.settle(settlement).await;
                return After::GoOn;
            }
        };
        let Some(open) = &self.open else { return After::Leave };
        let key = FlightKey {
            server_id: job.entry.server_id,
            message_id: job.entry.message_id,
            attempt: job.entry.attempts,
        };
        let mut flight = Flight::new(&shared, self.path, key, started_at, &job);
        if message.needs_smtputf8() && !open.connection.offers_smtputf8() && job.route.hosts.len() > 1 {
            match self.change_host_for_smtputf8(&job).await {
                Ok(None) => {}
                Ok(Some(peer)) => {
                    let ending = Ending::Utf8NotOffered;
                    let settlement =
                        self.judge(&job, &work, &peer, false, started_at, String::new(), None, ending);
                    shared.settle(settlement).await;
                    return After::Leave;
                }
                Err(failure) if failure.was_stopped => {
                    self.give_back(&job).await;
                    return After::Leave;
                }
                Err(failure) => return self.unreachable(&job, &work, failure, started_at).await,
            }
        }
        let Some(open) = &mut self.open else { return After::Leave };
        let usual = shared.settings.busy_greeting_timeout;
        let busy_reply = if job.is_site_silent { usual } else { BUSY_REPLY.min(usual) };
        let sent = open.connection.send(message, &mut flight, busy_reply).await;
        let connection = &mut open.connection;
        let ending = match sent {
            Ok(outcome) => {
                // What the connection's end was, if it has ended.
                let is_interrupted = outcome.verdict == Verdict::Interrupted;
                if is_interrupted {
                    connection.settle_down().await;
                }
                let ending = Ending::of(outcome, connection.closed(), connection.tls_problem());
                match (ending, connection.why_given_up_early()) {
                    (Some(Ending::Interrupted { phase, problem, class, after_final }), Some(why)) => {
                        let problem = format!("{problem}; {why}");
                        Some(Ending::Interrupted { phase, problem, class, after_final })
                    }
                    (ending, _) => ending,
                }
            }
            Err(SendError::NotReady | SendError::LimitReached) => {
                // The connection was gone before the message began.
                let open = self.open.take();
                self.put_back(job).await;
                if let Some(open) = open {
                    open.connection.quit().await;
                }
                return After::GoOn;
            }
        };
        let now = shared.clock.now();
        match &ending {
            Some(Ending::Accepted(reply)) => {
                let reply = (reply, Phase::Final);
                flight.answered(reply, &work.rcpt_to, &connection.peer, dkim.as_deref(), now);
            }
            Some(Ending::Refused { reply, phase }) => {
                let reply = (reply, *phase);
                flight.answered(reply, &work.rcpt_to, &connection.peer, dkim.as_deref(), now);
            }
            _ => {}
        }
        let Some(ending) = ending else {
            if connection.journal_failed() {
                shared.pause_for_journal();
            }
            self.give_back(&job).await;
            return After::Leave;
        };
        let makes_way = connection.why_given_up_early().is_some() && !job.is_site_silent;
        if makes_way && matches!(ending, Ending::Interrupted { after_final: false, .. }) {
            // Nothing of it was taken. It waits for a turn among the sites that do not answer, where it has more time.
            shared.with(|schedule, now| schedule.note_hang(self.path, started_at, now));
            self.open = None;
            drop(flight);
            self.put_back(job).await;
            return After::Leave;
        }
        let come_again_after = tell_schedule(&shared, self.path, &job, &ending);
        if waits_again(&ending, open.carried > 0, flight.is_marked) {
            if flight.is_marked {
                // It was refused, so nothing of it is left over there.
                shared.journal.settled([key]);
            }
            let open = self.open.take();
            self.put_back(job).await;
            if let Some(open) = open {
                open.connection.quit().await;
            }
            return After::GoOn;
        }
        open.carried += 1;
        let (peer, is_encrypted) = (connection.peer.clone(), connection.is_encrypted());
        let transcript = connection.describe_message(open.carried - 1);
        let flight = flight.is_marked.then_some(key);
        let attempt = self.attempt(&job, &work, &peer, is_encrypted, started_at, transcript, flight);
        let settlement = shared.judge(&Attempt { come_again_after, dkim, ..attempt }, ending);
        shared.settle(settlement).await;
        if let Some(open) = &mut self.open
            && !open.connection.settle_down().await
        {
            self.open = None;
        }
        After::GoOn
    }

    /// The host that we speak to does not take addresses beyond ASCII: perhaps another of the domain does, and then we speak
    /// to that one. If none does, it is the old host that refused.
    async fn change_host_for_smtputf8(&mut self, job: &Job) -> Result<Option<Peer>, ConnectFailure> {
        // One connection at a time: the site's limits count this task once.
        let Some(old) = self.open.take() else { return Ok(Some(Peer::default())) };
        let peer = old.connection.peer.clone();
        old.connection.quit().await;
        let connector = &self.shared.connector;
        let server = job.entry.server_id;
        let found = connector.connect_with_smtputf8(&job.route, &job.source, server, &peer.mx).await?;
        let Some(connection) = found else { return Ok(Some(peer)) };
        let rules = Arc::clone(&job.route.rules);
        self.open = Some(Open { connection, since: self.shared.clock.now(), carried: 0, rules });
        Ok(None)
    }

    /// A host that this message needs could not be spoken to.
    async fn unreachable(
        &mut self,
        job: &Job,
        work: &Work,
        failure: ConnectFailure,
        started_at: Timestamp,
    ) -> After {
        let ending = Ending::Unreachable {
            problem: failure.problem,
            class: failure.class,
            reply: failure.reply,
            was_tried: failure.was_tried,
        };
        let transcript = failure.transcript;
        let settlement = self.judge(job, work, &failure.peer, false, started_at, transcript, None, ending);
        self.shared.settle(settlement).await;
        After::Leave
    }

    /// We are stopping, and it was not tried.
    async fn give_back(&self, job: &Job) {
        self.shared.no_longer_in_flight(job.entry.key());
        self.unused(job);
        if let Err(error) = self.shared.store.release(vec![job.entry.key()]).await {
            tracing::warn!(%error, "releasing a claim failed; retrying");
            self.shared.give_back_later(job.entry.key());
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the facts of an attempt come from all sides here, once")]
    fn judge(
        &self,
        job: &Job,
        work: &Work,
        peer: &Peer,
        is_encrypted: bool,
        started_at: Timestamp,
        transcript: String,
        flight: Option<FlightKey>,
        ending: Ending,
    ) -> Settlement {
        let attempt = self.attempt(job, work, peer, is_encrypted, started_at, transcript, flight);
        self.shared.judge(&attempt, ending)
    }

    #[expect(clippy::too_many_arguments, reason = "as above")]
    #[expect(clippy::unused_self, reason = "beside `judge`")]
    fn attempt<'a>(
        &self,
        job: &Job,
        work: &'a Work,
        peer: &Peer,
        is_encrypted: bool,
        started_at: Timestamp,
        transcript: String,
        flight: Option<FlightKey>,
    ) -> Attempt<'a> {
        let transcript = match &job.waited {
            Some(waited) => format!("-- {waited}\n{transcript}"),
            None => transcript,
        };
        Attempt {
            entry: job.entry.clone(),
            domain: job.lane.domain.clone(),
            work: Some(work),
            peer: peer.clone(),
            source: job.counted_source(),
            ip_pool: job.source.pool.clone(),
            is_encrypted,
            is_simulated: job.route.kind == RouteKind::Simulator,
            started_at,
            ended_at: None,
            transcript,
            flight,
            come_again_after: None,
            dkim: None,
        }
    }
}

/// A message that needs TLS came over a route that does not demand it: it was not known before it was read.
fn needs_another_route(job: &Job, work: &Work) -> bool {
    let leaves = matches!(job.route.kind, RouteKind::Mx | RouteKind::SmartHost);
    let is_demanded = matches!(job.route.security, Security::Verified { .. } | Security::Implicit);
    leaves && work.send.info.options.require_tls && !is_demanded
}

/// Reports the outcome to the schedule. Returns the receiver's greylisting time, if it was greylisting.
fn tell_schedule(shared: &Arc<EngineShared>, path: usize, job: &Job, ending: &Ending) -> Option<Duration> {
    match ending {
        Ending::Accepted(_) => shared.with(|schedule, now| {
            if let Some(first) = job.entry.greylisted_at {
                schedule.greylisting_over(path, first, now);
            }
            schedule.accepted(path, &job.lane, now);
            None
        }),
        Ending::Refused { reply, phase } => {
            let reason = reply.to_string();
            let answer = answer(job, signal_of(reply, *phase), &reason);
            shared.with(|schedule, now| schedule.refused(path, answer, now))
        }
        Ending::Interrupted { class: BounceClass::Timeout, .. } => {
            shared.with(|schedule, now| schedule.note_silence(path, now));
            None
        }
        _ => None,
    }
}

fn answer<'a>(job: &'a Job, signal: Option<Signal>, reason: &'a str) -> Answer<'a> {
    let (server, greylisted_at) = (job.entry.server_id, job.entry.greylisted_at);
    Answer { lane: &job.lane, server, greylisted_at, signal, reason }
}

/// The message goes over a new connection: this one has carried enough, or it was used before and is gone now.
fn waits_again(ending: &Ending, was_used: bool, is_marked: bool) -> bool {
    match ending {
        Ending::Refused { reply, phase } => {
            let is_early = !matches!(phase, Phase::Body | Phase::Final);
            let is_stale = was_used && reply.code == 421 && *phase == Phase::MailFrom;
            is_put_back(signal_of(reply, *phase), is_early, is_stale)
        }
        Ending::Interrupted { phase: Phase::MailFrom, after_final: false, .. } => was_used && !is_marked,
        _ => false,
    }
}
