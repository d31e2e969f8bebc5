//! One message over an open connection: prepares it, sends it, and settles the receiver's reply.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::Timestamp;
use postroad_smtp::{Outcome, Phase, SendError, Verdict};
use postroad_store::StoreError;

use super::{NextStep, OpenConnection, Worker, within};
use crate::attempt::report::{WaitsAgain, report_ending, waits_again};
use crate::attempt::settle::{Attempt, Settlement};
use crate::attempt::{ConnectFailure, Connection, Ending, Peer};
use crate::engine::flight::Flight;
use crate::journal::FlightKey;
use crate::prepare::{LoadedMessage, PrepareError, PreparedMessage, SigningKeys};
use crate::route::RouteKind;
use crate::schedule::{Entry, Job, Reaction, Shortage};

/// While connections are scarce, a host gets this time for a reply in the middle of a message. Then the message is
/// aborted without a failed attempt, so that other sites or servers get the connection. A message that was aborted
/// before, or goes to a silent site, gets the longer `busy_greeting_timeout`.
const SCARCE_REPLY_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause after the store could not return the message.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(30);

impl Worker {
    pub(super) async fn transact(
        &mut self,
        job: Job,
        loaded_message: Arc<LoadedMessage>,
        started_at: Timestamp,
    ) -> NextStep {
        let shared = Arc::clone(&self.shared);
        let is_feedback_by_dkim = job.route.rules.feedback_by_dkim;
        let signing_keys = if is_feedback_by_dkim { SigningKeys::ForFeedback } else { SigningKeys::Usual };
        let PreparedMessage { message, dkim } =
            match shared.preparer.outgoing(&loaded_message, signing_keys).await {
                Ok(prepared) => prepared,
                Err(PrepareError::Store(error @ StoreError::Unavailable(_))) => {
                    self.read_again_later(&job, &error);
                    return NextStep::Continue;
                }
                Err(error) => {
                    tracing::error!(message.id = %job.entry.message_id, %error, "message cannot be sent");
                    let ending = Ending::Broken(error.shown());
                    let peer = Peer::default();
                    let settlement = self.settlement(
                        &job,
                        &loaded_message,
                        &peer,
                        false,
                        started_at,
                        String::new(),
                        None,
                        ending,
                    );
                    shared.settle(settlement).await;
                    return NextStep::Continue;
                }
            };
        let Some(open) = &self.open else { return NextStep::EndTask };
        let key = FlightKey {
            server_id: job.entry.server_id,
            message_id: job.entry.message_id,
            attempt: job.entry.attempts,
        };
        let mut flight = Flight::new(&shared, self.path, key, started_at, &job);
        if message.needs_smtputf8() && !open.connection.offers_smtputf8() && job.route.hosts.len() > 1 {
            let time_left = self.time_left(&job);
            let Some(changed) = within(time_left, Box::pin(self.change_host_for_smtputf8(&job))).await else {
                self.expire(&job, &loaded_message, started_at).await;
                return NextStep::EndTask;
            };
            match changed {
                // The connection is to another host now, which supports SMTPUTF8.
                Ok(None) => {}
                Ok(Some(peer)) => {
                    let ending = Ending::Utf8NotOffered;
                    let settlement = self.settlement(
                        &job,
                        &loaded_message,
                        &peer,
                        false,
                        started_at,
                        String::new(),
                        None,
                        ending,
                    );
                    shared.settle(settlement).await;
                    return NextStep::EndTask;
                }
                Err(failure) if failure.was_stopped => {
                    self.release(&job).await;
                    return NextStep::EndTask;
                }
                Err(failure) => {
                    return self.settle_unreachable(&job, &loaded_message, failure, started_at).await;
                }
            }
        }
        let time_left = self.time_left(&job);
        let Some(open) = &mut self.open else { return NextStep::EndTask };
        let longest = shared.settings.busy_greeting_timeout;
        let may_abort = !job.is_site_silent && !job.entry.was_aborted;
        let scarce_reply = if may_abort { SCARCE_REPLY_TIMEOUT.min(longest) } else { longest };
        // A message to a site that answers is aborted only if the node has no connection left, not if only new or
        // silent sites wait.
        let abort_shortage = if job.is_site_answering { Shortage::Full } else { Shortage::Unproved };
        let sent = open.connection.send(message, &mut flight, scarce_reply, abort_shortage, time_left).await;
        let connection = &mut open.connection;
        let ending = match sent {
            Ok(outcome) => ending_of(outcome, connection).await,
            Err(SendError::NotReady | SendError::LimitReached) => {
                // The connection ended, or takes no more messages, before this message began.
                let open = self.open.take();
                self.put_back(job).await;
                if let Some(open) = open {
                    open.connection.quit().await;
                }
                return NextStep::Continue;
            }
        };
        if connection.has_expired() {
            let (peer, is_encrypted) = (connection.peer.clone(), connection.is_encrypted());
            let transcript = connection.describe_message(open.carried);
            self.open = None;
            let ending = Ending::Expired;
            let settlement = self.settlement(
                &job,
                &loaded_message,
                &peer,
                is_encrypted,
                started_at,
                transcript,
                None,
                ending,
            );
            shared.settle(settlement).await;
            return NextStep::Continue;
        }
        let now = shared.clock.now();
        match &ending {
            Some(Ending::Accepted(reply)) => {
                let reply = (reply, Phase::Final);
                flight.mark_reply(reply, &loaded_message.rcpt_to, &connection.peer, dkim.as_deref(), now);
            }
            Some(Ending::Refused { reply, phase }) => {
                let reply = (reply, *phase);
                flight.mark_reply(reply, &loaded_message.rcpt_to, &connection.peer, dkim.as_deref(), now);
            }
            _ => {}
        }
        let Some(ending) = ending else {
            if connection.journal_failed() {
                shared.pause_for_journal();
            }
            self.release(&job).await;
            return NextStep::EndTask;
        };
        let was_aborted = connection.why_given_up_early().is_some() && may_abort;
        if was_aborted && matches!(ending, Ending::Interrupted { after_last_byte: false, .. }) {
            // The host has not accepted the message, which waits until connections to silent sites may be opened. Then
            // its host gets more time.
            shared.with(|schedule, now| schedule.note_hang(self.path, started_at, now));
            self.open = None;
            drop(flight);
            let entry = Entry { was_aborted: true, ..job.entry };
            self.put_back(Job { entry, ..job }).await;
            return NextStep::EndTask;
        }
        let Reaction { retry_after, conclusion } =
            shared.with(|schedule, now| report_ending(schedule, self.path, &job, &ending, now));
        if let Some(next) = waits_again(&ending, open.carried > 0, flight.is_marked) {
            if flight.is_marked {
                // The message was refused, so the receiver keeps no copy.
                shared.journal.remove_settled([key]);
            }
            let open = self.open.take();
            self.put_back(job).await;
            if let Some(open) = open {
                open.connection.quit().await;
            }
            return match next {
                WaitsAgain::TaskContinues => NextStep::Continue,
                WaitsAgain::TaskEnds => NextStep::EndTask,
            };
        }
        open.carried += 1;
        let (peer, is_encrypted) = (connection.peer.clone(), connection.is_encrypted());
        let transcript = connection.describe_message(open.carried - 1);
        let flight = flight.is_marked.then_some(key);
        let attempt =
            self.build_attempt(&job, &loaded_message, &peer, is_encrypted, started_at, transcript, flight);
        let settlement = shared.settlement_of(&Attempt { retry_after, conclusion, dkim, ..attempt }, ending);
        shared.settle(settlement).await;
        if let Some(open) = &mut self.open
            && !open.connection.wait_until_ready().await
        {
            self.open = None;
        }
        NextStep::Continue
    }

    /// The message cannot be read now. Its claim is released after a pause, so that other messages of its lane need
    /// not wait.
    fn read_again_later(&self, job: &Job, error: &StoreError) {
        tracing::warn!(message.id = %job.entry.message_id, %error, "reading a message failed; retrying soon");
        let shared = Arc::clone(&self.shared);
        let key = job.entry.key();
        shared.no_longer_being_sent(key);
        self.return_quota(job);
        self.shared.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(UNREADABLE_PAUSE) => {}
                () = shared.stopped() => {}
            }
            shared.release_later(key);
        });
    }

    /// The current host does not support non-ASCII addresses: tries the other hosts of the domain. Returns `None` if
    /// one of them does; otherwise the old host, for the delivery record.
    async fn change_host_for_smtputf8(&mut self, job: &Job) -> Result<Option<Peer>, ConnectFailure> {
        // One connection at a time: the site's limits count this task once.
        let Some(old) = self.open.take() else { return Ok(Some(Peer::default())) };
        let peer = old.connection.peer.clone();
        old.connection.quit().await;
        let connector = &self.shared.connector;
        let (server, attempts) = (job.entry.server_id, job.entry.attempts);
        let found =
            connector.connect_with_smtputf8(&job.route, &job.source, server, &peer.mx, attempts).await?;
        let Some(connection) = found else { return Ok(Some(peer)) };
        let rules = Arc::clone(&job.route.rules);
        self.open = Some(OpenConnection { connection, since: self.shared.clock.now(), carried: 0, rules });
        Ok(None)
    }

    /// Settles a message for which no connection was opened. Either no host accepts messages, or the message needs
    /// SMTPUTF8, and a host that may support it could not be reached or was not tried.
    pub(super) async fn settle_unreachable(
        &mut self,
        job: &Job,
        loaded_message: &LoadedMessage,
        failure: ConnectFailure,
        started_at: Timestamp,
    ) -> NextStep {
        let ending = Ending::Unreachable {
            problem: failure.problem,
            class: failure.class,
            reply: failure.reply,
            was_tried: failure.was_tried,
        };
        let transcript = failure.transcript;
        let settlement =
            self.settlement(job, loaded_message, &failure.peer, false, started_at, transcript, None, ending);
        self.shared.settle(settlement).await;
        NextStep::EndTask
    }

    /// Turns the ending of the job's attempt into its settlement.
    #[expect(clippy::too_many_arguments, reason = "callers have these facts in different places")]
    pub(super) fn settlement(
        &self,
        job: &Job,
        loaded_message: &LoadedMessage,
        peer: &Peer,
        is_encrypted: bool,
        started_at: Timestamp,
        transcript: String,
        flight: Option<FlightKey>,
        ending: Ending,
    ) -> Settlement {
        let attempt =
            self.build_attempt(job, loaded_message, peer, is_encrypted, started_at, transcript, flight);
        self.shared.settlement_of(&attempt, ending)
    }

    #[expect(clippy::too_many_arguments, reason = "the same arguments as `settlement`")]
    #[expect(clippy::unused_self, reason = "called in the same way as `settlement`")]
    fn build_attempt<'a>(
        &self,
        job: &Job,
        loaded_message: &'a LoadedMessage,
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
            loaded_message: Some(loaded_message),
            peer: peer.clone(),
            source: job.counted_source(),
            ip_pool: job.source.pool.clone(),
            is_encrypted,
            is_simulated: job.route.kind == RouteKind::Simulator,
            started_at,
            ended_at: None,
            transcript,
            flight,
            retry_after: None,
            conclusion: None,
            dkim: None,
        }
    }
}

/// The ending of the message, after waiting for the end of a connection that is closing. `None` as in `Ending::of`.
async fn ending_of(outcome: Outcome, connection: &mut Connection) -> Option<Ending> {
    if outcome.verdict == Verdict::Interrupted {
        connection.wait_until_ready().await;
    }
    let ending = Ending::of(outcome, connection.closed(), connection.tls_problem());
    match (ending, connection.why_given_up_early()) {
        (Some(Ending::Interrupted { phase, problem, class, after_last_byte }), Some(why)) => {
            let problem = format!("{problem}; {why}");
            Some(Ending::Interrupted { phase, problem, class, after_last_byte })
        }
        (ending, _) => ending,
    }
}
