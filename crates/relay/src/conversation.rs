//! Socket loop around an SMTP session: answers the session's events, writes its output, and reads its input.

use std::io;
use std::sync::Arc;

use postroad_smtp::server::{Event, ServerSession, StandardReply};
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use crate::TimeLimits;
use crate::incoming::Incoming;
use crate::maybe_tls_stream::MaybeTlsStream;
use crate::memory::Memory;
use crate::phase::Phase;
use crate::replies;
use crate::session_deadlines::SessionDeadlines;
use crate::session_peer::SessionPeer;

/// Size of the buffer between messages. Small, because most sessions wait and most reads are short.
const COMMAND_READ_BYTES: usize = 2 << 10;
/// Size of the buffer while a message is received.
const CONTENT_READ_BYTES: usize = 32 << 10;

pub(crate) struct Conversation {
    pub(crate) session: ServerSession,
    pub(crate) peer: SessionPeer,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) message_bytes_max: usize,
    pub(crate) times: TimeLimits,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) deadlines: SessionDeadlines,
    /// Message being received.
    pub(crate) message: Option<Incoming>,
}

/// What the socket loop does once the events of the session are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStep {
    Read,
    Encrypt,
    Close,
}

impl Conversation {
    pub(crate) async fn run(mut self, mut socket: MaybeTlsStream) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(COMMAND_READ_BYTES);
        loop {
            let mut next = self.answer_all().await;
            if self.must_end() {
                self.session.close(StandardReply::ShuttingDown);
                next = self.answer_all().await;
            }
            if !self.session.is_in_transaction() {
                self.deadlines.on_content_end();
            }
            let output = self.session.take_output();
            if !output.is_empty() {
                timeout(self.times.write, socket.write_all(&output)).await??;
                self.deadlines.on_reply();
            }
            match next {
                NextStep::Read => {
                    self.fit_buffer(&mut buffer);
                    if !self.read(&mut socket, &mut buffer).await? {
                        return Ok(());
                    }
                }
                NextStep::Encrypt => socket = self.encrypt(socket).await?,
                NextStep::Close => {
                    socket.close().await;
                    return Ok(());
                }
            }
        }
    }

    /// Handles all events of the session.
    async fn answer_all(&mut self) -> NextStep {
        while let Some(event) = self.session.next_event() {
            match event {
                Event::StartTls => return NextStep::Encrypt,
                Event::Auth(login) => {
                    let reply = self.peer.log_in(&login).await;
                    self.session.reply(reply);
                }
                Event::Mail(_) => {
                    let reply = self.peer.begin_message().await;
                    self.session.reply(reply);
                }
                Event::Rcpt(rcpt) => self.session.reply(self.peer.reply_to_rcpt(&rcpt)),
                Event::Message(envelope) => {
                    self.deadlines.on_content_begin();
                    let (memory, tenant) = (Arc::clone(&self.memory), self.peer.tenant());
                    self.message = Some(Incoming::new(envelope, memory, tenant, self.message_bytes_max));
                }
                Event::Data(piece) => {
                    if let Some(message) = &mut self.message {
                        message.add(&piece).await;
                    }
                }
                Event::EndOfData => {
                    let message = self.message.take();
                    let reply = self.peer.take_message(message).await;
                    self.session.reply(reply);
                }
                Event::Dropped(_) | Event::Abandoned => self.message = None,
                Event::Closed(_) => return NextStep::Close,
            }
        }
        NextStep::Read
    }

    /// Whether to end the session now. While the relay stops, messages in progress may finish.
    fn must_end(&self) -> bool {
        match *self.phase.borrow() {
            Phase::Running => false,
            Phase::Stopping => !self.session.is_in_transaction(),
            Phase::CuttingOff => true,
        }
    }

    /// Reads one piece of input, or ends the session at its deadline. Returns `false` when the client or the relay has
    /// gone.
    async fn read(&mut self, socket: &mut MaybeTlsStream, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let deadline = self.deadlines.deadline(self.session.is_in_transaction());
        tokio::select! {
            // Check the deadline first: a client that never pauses must not outlive it.
            biased;
            () = sleep_until(deadline) => {
                let is_slow = self.deadlines.is_in_content();
                self.session.close(if is_slow { replies::too_slow() } else { StandardReply::Idle.into() });
                Ok(true)
            }
            // An error means that the relay was dropped: the session ends.
            changed = self.phase.changed() => Ok(changed.is_ok()),
            read = socket.read(buffer) => {
                let count = read?;
                self.deadlines.on_read(count);
                self.session.feed(buffer);
                Ok(count > 0)
            }
        }
    }

    async fn encrypt(&mut self, socket: MaybeTlsStream) -> io::Result<MaybeTlsStream> {
        // The error is not reached: the session requests the handshake once, outside TLS, and only if there is a
        // certificate.
        let (MaybeTlsStream::Plain(stream), Some(tls)) = (socket, &self.tls) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let socket = MaybeTlsStream::encrypt(stream, tls, self.times.tls_handshake).await?;
        self.peer.tls_established();
        self.session.tls_established();
        self.deadlines.on_reply();
        Ok(socket)
    }

    /// Empties the buffer and adapts its capacity to the next read. The capacity is not zeroed, which would take
    /// measurable time per message.
    fn fit_buffer(&self, buffer: &mut Vec<u8>) {
        let wanted = if self.message.is_some() { CONTENT_READ_BYTES } else { COMMAND_READ_BYTES };
        if buffer.capacity() == wanted {
            buffer.clear();
        } else {
            *buffer = Vec::with_capacity(wanted);
        }
    }
}
