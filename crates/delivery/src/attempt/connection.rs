//! A connection to one host: drives the SMTP session over the socket, one message at a time, and reports the outcome
//! of each. Right before the last bytes of a message are sent, `FlightMarks` writes a mark to the flight journal.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use postroad_smtp::{
    ClientSession, Closed, EndCause, Event, Outcome, OutgoingMessage, Phase, SendError, TlsMode, Transcript,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::connect_progress::ConnectProgress;
use super::stream::{Stream, tls_handshake};
use crate::schedule::Shortage;

const WRITE_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 4 << 10;
/// A connection that waits longer for the final reply is parked (`schedule/parking.rs`), so that another can be opened.
const FINAL_REPLY_USUAL: Duration = Duration::from_secs(3);
/// Total time for reading the host's replies after a write to it has failed.
const LAST_REPLIES_TIME_MAX: Duration = Duration::from_secs(5);

/// The remote host and the parameters of the connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Peer {
    pub(crate) mx: String,
    pub(crate) remote_ip: Option<IpAddr>,
    pub(crate) source_ip: Option<IpAddr>,
    /// Version and cipher.
    pub(crate) tls: Option<String>,
    /// Policy that required TLS, such as DANE; `None` if none did.
    pub(crate) tls_policy: Option<Cow<'static, str>>,
    /// Why TLS was not used although the host offers it.
    pub(crate) without_tls: Option<String>,
    /// Identifies the connection in delivery records.
    pub(crate) log_id: String,
}

/// The operator's upper limits for the timeouts of the phases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PhaseTimeouts {
    pub(crate) reply: Duration,
    pub(crate) final_reply: Duration,
    /// While connections are scarce: time until a connected host accepts messages, or takes the next bytes of a body.
    pub(crate) scarce_opening: Duration,
}

impl PhaseTimeouts {
    fn for_phase(self, phase: Phase) -> Duration {
        let usual = phase.time_limit().unwrap_or(Duration::from_mins(5));
        usual.min(if phase == Phase::Final { self.final_reply } else { self.reply })
    }
}

pub(crate) struct Connection {
    pub(crate) peer: Peer,
    /// Name of the host. Its certificate must match the name where certificates are verified.
    host: String,
    session: ClientSession,
    stream: Option<Box<dyn Stream>>,
    tls_config: Arc<rustls::ClientConfig>,
    timeouts: PhaseTimeouts,
    closed: Option<Closed>,
    /// Why the TLS handshake failed.
    tls_problem: Option<String>,
    /// Present while the session opens.
    opening: Option<Opening>,
    /// Time for each reply before the last bytes of the message, while connections are scarce.
    scarce_reply: Duration,
    /// Degree of scarcity from which `scarce_reply` applies.
    abort_shortage: Shortage,
    /// If the host was given up early because connections are scarce: the time that hosts get then, and the usual time.
    /// This host may have had more time than that, if connections became scarce later.
    given_up_early: Option<(Duration, Duration)>,
    /// The last bytes of the message must not be sent after this time.
    expires_at: Option<Instant>,
    /// Whether the message was given up because it expired.
    has_expired: bool,
    /// Whether a message was not finished because its journal mark could not be written.
    journal_failed: bool,
    /// The DNS answer that led to this host.
    dns_answer: Option<String>,
    input: Vec<u8>,
    out: Vec<u8>,
    signals: Signals,
}

/// A session before its first message.
struct Opening {
    progress: watch::Sender<ConnectProgress>,
    /// Deadline while connections are scarce.
    scarce_deadline: Instant,
}

/// Signals to all connections.
pub(crate) struct Signals {
    /// Whether the service is stopping.
    pub(crate) stop: watch::Receiver<bool>,
    /// How scarce connections are.
    pub(crate) shortage: watch::Receiver<Shortage>,
}

/// Completes when a host has used up its time and connections are at least as scarce as `abort_shortage`.
async fn wait_until_overdue(
    scarce_deadline: Option<Instant>,
    abort_shortage: Shortage,
    shortage: &mut watch::Receiver<Shortage>,
) {
    if let Some(scarce_deadline) = scarce_deadline {
        tokio::time::sleep_until(scarce_deadline).await;
        if shortage.wait_for(|shortage| *shortage >= abort_shortage).await.is_ok() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

async fn wait_until_expired(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Writes the journal marks of one flight; implemented by `engine/flight.rs`.
pub(crate) trait FlightMarks: Send {
    /// Called right before the last bytes of the message are sent. On `Err` they must not be sent.
    fn mark_finishing(&mut self) -> std::io::Result<()>;

    /// Called when the message is sent and its reply takes long.
    fn note_late_reply(&mut self);
}

/// Writes no marks: there is no message while the session opens, between messages, and while the session ends.
struct NoFlight;

impl FlightMarks for NoFlight {
    fn mark_finishing(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn note_late_reply(&mut self) {}
}

impl Connection {
    pub(crate) fn new(
        session: ClientSession,
        stream: Box<dyn Stream>,
        host: &str,
        peer: Peer,
        tls_config: Arc<rustls::ClientConfig>,
        timeouts: PhaseTimeouts,
        signals: Signals,
    ) -> Self {
        Self {
            peer,
            host: host.to_owned(),
            session,
            stream: Some(stream),
            tls_config,
            timeouts,
            closed: None,
            tls_problem: None,
            opening: None,
            scarce_reply: timeouts.scarce_opening,
            abort_shortage: Shortage::Unproved,
            given_up_early: None,
            expires_at: None,
            has_expired: false,
            journal_failed: false,
            dns_answer: None,
            input: vec![0; READ_BYTES],
            out: Vec::new(),
            signals,
        }
    }

    /// Runs until the session accepts messages. `tls` is the mode of the session. `progress` is set when the first
    /// bytes of the host arrive.
    pub(crate) async fn open(
        &mut self,
        tls: TlsMode,
        progress: &watch::Sender<ConnectProgress>,
    ) -> Result<(), Closed> {
        let scarce_deadline = Instant::now() + self.timeouts.scarce_opening;
        self.opening = Some(Opening { progress: progress.clone(), scarce_deadline });
        if tls == TlsMode::Implicit
            && let Err(cause) = self.handshake().await
        {
            self.session.connection_ended(cause);
        }
        let end = self.run(&mut NoFlight).await;
        self.opening = None;
        match end {
            RunEnd::Ready => Ok(()),
            RunEnd::Outcome(_) => unreachable!("no message was sent"),
            RunEnd::Closed => Err(self.closed.clone().unwrap_or(Closed::Quit)),
        }
    }

    /// Sends one message and waits for its outcome. `scarce_reply` is the time for each reply before the message's last
    /// bytes, while connections are at least as scarce as `abort_shortage`. A message whose last bytes are not sent
    /// within `time_left` has expired.
    pub(crate) async fn send(
        &mut self,
        message: OutgoingMessage,
        marks: &mut impl FlightMarks,
        scarce_reply: Duration,
        abort_shortage: Shortage,
        time_left: Option<Duration>,
    ) -> Result<Outcome, SendError> {
        (self.scarce_reply, self.abort_shortage) = (scarce_reply, abort_shortage);
        self.session.send(message)?;
        self.expires_at = time_left.and_then(|left| Instant::now().checked_add(left));
        let end = self.run(marks).await;
        self.expires_at = None;
        match end {
            RunEnd::Outcome(outcome) => Ok(outcome),
            RunEnd::Ready | RunEnd::Closed => Err(SendError::NotReady),
        }
    }

    /// Whether the peer supports non-ASCII addresses (RFC 6531).
    pub(crate) fn offers_smtputf8(&self) -> bool {
        self.session.capabilities().smtputf8
    }

    /// Whether the session continued without the TLS that the host announces (RFC 3207 4).
    pub(crate) fn was_starttls_refused(&self) -> bool {
        self.session.capabilities().starttls && !self.is_encrypted()
    }

    /// Waits, after an outcome, until the session accepts the next message. `false` if the session ends instead.
    pub(crate) async fn wait_until_ready(&mut self) -> bool {
        // A closed session produces no more events: waiting for one would never end.
        if self.closed.is_some() {
            return false;
        }
        if self.session.phase() == Phase::Ready {
            // The session has also queued `Event::Ready`. It is dropped here, because it would end the wait for the
            // next message's outcome.
            self.take_closed();
            return self.closed.is_none();
        }
        matches!(self.run(&mut NoFlight).await, RunEnd::Ready)
    }

    /// Waits on an idle connection until the peer sends something or closes it; both mean that the connection ends.
    pub(crate) async fn wait_while_idle(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let read = stream.read(&mut self.input).await;
        match read {
            Ok(0) => self.session.connection_ended(EndCause::EndOfStream),
            Ok(count) => self.session.feed(&self.input[..count]),
            Err(_) => self.session.connection_ended(EndCause::Io),
        }
        self.take_closed();
    }

    pub(crate) async fn quit(mut self) {
        if self.session.quit().is_ok() {
            self.run(&mut NoFlight).await;
        }
        if let Some(stream) = &mut self.stream {
            // The peer may have closed already; then there is nothing to shut down.
            let _ = timeout(Duration::from_secs(2), stream.shutdown()).await;
        }
    }

    pub(crate) fn closed(&self) -> Option<&Closed> {
        self.closed.as_ref()
    }

    pub(crate) fn tls_problem(&self) -> Option<&str> {
        self.tls_problem.as_deref()
    }

    /// A clause for the delivery record, if the host was given up early because connections are scarce.
    pub(crate) fn why_given_up_early(&self) -> Option<String> {
        let (after, usual) = self.given_up_early?;
        let (after, usual) = (after.as_secs_f32(), usual.as_secs_f32());
        Some(format!(
            "given up because connections are scarce: hosts then get {after} s instead of {usual} s"
        ))
    }

    /// Whether the message was given up because it expired. The host has not accepted it, and the connection is
    /// closed.
    pub(crate) fn has_expired(&self) -> bool {
        self.has_expired
    }

    pub(crate) fn journal_failed(&self) -> bool {
        self.journal_failed
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.session.is_encrypted()
    }

    pub(crate) fn take_transcript(&mut self) -> Transcript {
        self.session.take_transcript()
    }

    /// Adds a line of our own to the transcript.
    pub(crate) fn note(&mut self, text: &str) {
        self.session.note(text);
    }

    /// Keeps the DNS answer that led to this host, for the transcript of every message of this connection.
    pub(crate) fn note_dns(&mut self, answer: String) {
        self.session.note(&answer);
        self.dns_answer = Some(answer);
    }

    /// The transcript of one message; the connection carried `carried` others before it.
    pub(crate) fn describe_message(&mut self, carried: u32) -> String {
        let own = self.session.take_transcript().to_string();
        match &self.dns_answer {
            Some(answer) if carried > 0 => {
                format!("-- {answer}\n-- message {} of this connection\n{own}", carried + 1)
            }
            _ => own,
        }
    }

    fn take_closed(&mut self) {
        while let Some(event) = self.session.next_event() {
            if let Event::Closed(closed) = event {
                self.closed = Some(closed);
            }
        }
    }

    /// Reads and writes until the `ClientSession` is ready, has an outcome, or is closed.
    async fn run(&mut self, marks: &mut impl FlightMarks) -> RunEnd {
        let (mut last_bytes_sent, mut is_late) = (false, false);
        loop {
            let room = WRITE_BYTES_MAX - self.out.len();
            let mut made_progress = self.session.fill_output(&mut self.out, room) > 0;
            while let Some(event) = self.session.next_event() {
                made_progress = true;
                match event {
                    Event::StartTls => match self.handshake().await {
                        Ok(()) => self.session.tls_established(),
                        Err(cause) => self.session.connection_ended(cause),
                    },
                    Event::Ready => return RunEnd::Ready,
                    Event::Finishing
                        if self.expires_at.is_some_and(|expires_at| expires_at <= Instant::now()) =>
                    {
                        self.has_expired = true;
                        self.session.connection_ended(EndCause::Stopped);
                    }
                    Event::Finishing => match marks.mark_finishing() {
                        Ok(()) => last_bytes_sent = true,
                        Err(error) => {
                            tracing::error!(%error, "flight journal cannot be written; the message is not finished, and sending pauses");
                            self.journal_failed = true;
                            self.session.connection_ended(EndCause::Stopped);
                        }
                    },
                    Event::Outcome(outcome) => return RunEnd::Outcome(outcome),
                    Event::Closed(closed) => {
                        self.closed = Some(closed);
                        self.flush_quit().await;
                        return RunEnd::Closed;
                    }
                }
            }
            if made_progress {
                continue;
            }
            if self.stream.is_none() {
                self.session.connection_ended(EndCause::EndOfStream);
                continue;
            }
            // The wait is interrupted only if nothing is left to write: a read can be restarted, a write cannot.
            if last_bytes_sent && !is_late && self.out.is_empty() {
                if timeout(FINAL_REPLY_USUAL, self.write_or_read(last_bytes_sent)).await.is_err() {
                    is_late = true;
                    marks.note_late_reply();
                }
                continue;
            }
            self.write_or_read(last_bytes_sent).await;
        }
    }

    /// One write or one read.
    async fn write_or_read(&mut self, last_bytes_sent: bool) {
        let Some(stream) = &mut self.stream else { return };
        let phase = self.session.phase();
        let phase_timeout = self.timeouts.for_phase(phase);
        let scarce_time = match phase {
            _ if last_bytes_sent => None,
            Phase::MailFrom | Phase::RcptTo | Phase::Data => Some(self.scarce_reply),
            // Large messages take long on slow links.
            Phase::Body => Some(self.timeouts.scarce_opening),
            _ => None,
        };
        let scarce_deadline = match &self.opening {
            Some(opening) => Some(opening.scarce_deadline),
            None => scarce_time.map(|time| Instant::now() + time),
        };
        let abort_shortage = if self.opening.is_some() { Shortage::Unproved } else { self.abort_shortage };
        let scarce_time = scarce_time.unwrap_or(self.timeouts.scarce_opening);
        // Once the last bytes of the message were sent, the reply is worth waiting for, even while the service is
        // stopping.
        let stopping = async {
            if last_bytes_sent || self.signals.stop.wait_for(|stop| *stop).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let expiry = wait_until_expired(self.expires_at.filter(|_| !last_bytes_sent));
        if !self.out.is_empty() {
            let written = tokio::select! {
                biased;
                written = timeout(phase_timeout, write(stream, &self.out)) => written,
                () = wait_until_overdue(scarce_deadline, abort_shortage, &mut self.signals.shortage) => {
                    self.stream = None;
                    self.given_up_early = Some((scarce_time, phase_timeout));
                    self.session.connection_ended(EndCause::TimedOut);
                    return;
                }
                () = stopping => {
                    self.stream = None;
                    self.session.connection_ended(EndCause::Stopped);
                    return;
                }
                () = expiry => {
                    self.stream = None;
                    self.has_expired = true;
                    self.session.connection_ended(EndCause::Stopped);
                    return;
                }
            };
            self.out.clear();
            if matches!(written, Ok(Ok(()))) {
                return;
            }
            // A host that refuses in the middle of a message replies and closes.
            let last_replies = async {
                while let Ok(count @ 1..) = stream.read(&mut self.input).await {
                    self.session.feed(&self.input[..count]);
                }
            };
            let _ = timeout(LAST_REPLIES_TIME_MAX, last_replies).await;
            self.stream = None;
            let cause = if written.is_err() { EndCause::TimedOut } else { EndCause::Io };
            self.session.connection_ended(cause);
            return;
        }
        tokio::select! {
            biased;
            read = timeout(phase_timeout, stream.read(&mut self.input)) => match read {
                Ok(Ok(0)) => self.session.connection_ended(EndCause::EndOfStream),
                Ok(Ok(count)) => {
                    if let Some(opening) = &self.opening {
                        opening.progress.send_if_modified(|progress| progress.raise(ConnectProgress::Greeting));
                    }
                    self.session.feed(&self.input[..count]);
                }
                Ok(Err(_)) => self.session.connection_ended(EndCause::Io),
                Err(_) => self.session.connection_ended(EndCause::TimedOut),
            },
            () = wait_until_overdue(scarce_deadline, abort_shortage, &mut self.signals.shortage) => {
                self.given_up_early = Some((scarce_time, phase_timeout));
                self.session.connection_ended(EndCause::TimedOut);
            }
            () = stopping => self.session.connection_ended(EndCause::Stopped),
            () = expiry => {
                self.has_expired = true;
                self.session.connection_ended(EndCause::Stopped);
            }
        }
    }

    async fn handshake(&mut self) -> Result<(), EndCause> {
        let Some(stream) = self.stream.take() else { return Err(EndCause::TlsFailed) };
        let config = Arc::clone(&self.tls_config);
        let phase_timeout = self.timeouts.for_phase(Phase::TlsHandshake);
        let scarce_deadline = self.opening.as_ref().map(|opening| opening.scarce_deadline);
        let abort_shortage = Shortage::Unproved;
        let handshake = tokio::select! {
            handshake = timeout(phase_timeout, tls_handshake(stream, config, &self.host)) => handshake,
            Ok(_) = self.signals.stop.wait_for(|stop| *stop) => return Err(EndCause::Stopped),
            () = wait_until_overdue(scarce_deadline, abort_shortage, &mut self.signals.shortage) => {
                self.given_up_early = Some((self.timeouts.scarce_opening, phase_timeout));
                // Not `TlsFailed`, which leads to a retry in plain text: with its usual time, the handshake may
                // succeed.
                return Err(EndCause::TimedOut);
            }
        };
        let problem = match handshake {
            Ok(Ok((stream, facts))) => {
                self.stream = Some(stream);
                self.peer.tls = Some(facts.text);
                return Ok(());
            }
            Ok(Err(problem)) => problem,
            Err(_) => "the handshake took too long".to_owned(),
        };
        self.tls_problem = Some(problem);
        Err(EndCause::TlsFailed)
    }

    /// Sends QUIT without waiting for the reply.
    async fn flush_quit(&mut self) {
        self.session.fill_output(&mut self.out, WRITE_BYTES_MAX);
        if let Some(stream) = &mut self.stream
            && !self.out.is_empty()
        {
            let _ = timeout(Duration::from_secs(2), write(stream, &self.out)).await;
        }
    }
}

/// Why `run` returned.
enum RunEnd {
    Ready,
    Outcome(Outcome),
    Closed,
}

async fn write(stream: &mut Box<dyn Stream>, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}
