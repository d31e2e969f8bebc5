//! SMTP client session. The driver owns the socket and runs this loop: call `fill_output` and take all events
//! until neither yields anything; then write the output. If there is none, read and `feed` instead. On end of stream,
//! error or deadline call `connection_ended`. If a write fails, read the peer's remaining replies first: a host that
//! refuses in the middle of a message replies and closes.

mod closing;
mod config;
mod envelope;
mod event;
mod opening;
mod output;
mod transaction;

use std::collections::VecDeque;
use std::fmt;

pub use config::{ClientConfig, Credentials, HeloName, OutgoingMessage, TlsMode};
pub use event::{Closed, EndCause, Event, Outcome, ProtocolError, SendError, Verdict};

use crate::capabilities::Capabilities;
use crate::phase::Phase;
use crate::reply::Reply;
use crate::reply_reader::ReplyReader;
use crate::transcript::Transcript;
use output::{Awaited, Segment};
use transaction::{Finish, Transaction};

pub struct ClientSession {
    config: ClientConfig,
    link: Link,
    is_encrypted: bool,
    capabilities: Capabilities,
    reader: ReplyReader,
    /// Output not handed out yet.
    output: VecDeque<Segment>,
    /// Replies awaited for bytes that were handed out; oldest first.
    awaited: VecDeque<Awaited>,
    events: VecDeque<Event>,
    transaction: Option<Transaction>,
    transcript: Transcript,
    messages_tried: u32,
    messages_accepted: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Open,
    TlsHandshake,
    Closed,
}

impl ClientSession {
    /// Starts a session on a new connection; awaits the banner.
    pub fn new(config: ClientConfig) -> Self {
        Self {
            link: Link::Open,
            is_encrypted: config.tls == TlsMode::Implicit,
            capabilities: Capabilities::default(),
            reader: ReplyReader::default(),
            output: VecDeque::new(),
            awaited: VecDeque::from([Awaited::Banner]),
            events: VecDeque::new(),
            transaction: None,
            transcript: Transcript::new(config.transcript_bytes_max),
            messages_tried: 0,
            messages_accepted: 0,
            config,
        }
    }

    /// Current phase. The driver restarts its deadline when the phase changes or a byte moves.
    pub fn phase(&self) -> Phase {
        match self.link {
            Link::Closed => Phase::Closed,
            Link::TlsHandshake => Phase::TlsHandshake,
            Link::Open => match (self.awaited.front(), self.output.front()) {
                (Some(awaited), _) => awaited.phase(),
                (None, Some(segment)) => segment.phase(),
                (None, None) => Phase::Ready,
            },
        }
    }

    pub fn next_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if event == Event::Finishing
            && let Some(transaction) = &mut self.transaction
            && transaction.finish == Finish::Announced
        {
            transaction.finish = Finish::Allowed;
        }
        Some(event)
    }

    /// Processes bytes from the server, in pieces of any size.
    pub fn feed(&mut self, mut input: &[u8]) {
        while !input.is_empty() && self.link != Link::Closed {
            if self.link == Link::TlsHandshake {
                // RFC 3207 4.2: bytes between the reply to STARTTLS and the handshake may be injected (CVE-2011-0411).
                self.events.retain(|event| *event != Event::StartTls);
                return self.protocol_error(ProtocolError::BytesAfterStartTls);
            }
            match self.reader.read(&mut input) {
                Ok(None) => return,
                Ok(Some(reply)) => self.take_reply(reply),
                Err(error) => return self.protocol_error(error.into()),
            }
        }
    }

    /// Appends at most `room` bytes to `out` and returns their number: zero if there is nothing to send, or if
    /// an event must be taken first.
    pub fn fill_output(&mut self, out: &mut Vec<u8>, room: usize) -> usize {
        let before = out.len();
        loop {
            let left = room - (out.len() - before);
            let Some(segment) = self.output.front_mut() else { break };
            if left == 0 {
                break;
            }
            if segment.ends_message && segment.fits(left) && !self.may_finish() {
                break;
            }
            let Some(segment) = self.output.front_mut() else { break };
            segment.write(out, left);
            if segment.is_done()
                && let Some(done) = self.output.pop_front()
            {
                self.on_handed_out(&done);
            }
        }
        out.len() - before
    }

    /// Extensions that the server offers; once TLS is on, those offered inside TLS.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// MAIL commands sent in this session.
    pub fn messages_tried(&self) -> u32 {
        self.messages_tried
    }

    pub fn messages_accepted(&self) -> u32 {
        self.messages_accepted
    }

    /// Takes the transcript since the last call.
    pub fn take_transcript(&mut self) -> Transcript {
        self.transcript.take()
    }

    /// Adds a line of the driver to the transcript, such as how long connecting took.
    pub fn note(&mut self, text: &str) {
        self.transcript.note(text);
    }

    fn say(&mut self, segment: Segment) {
        self.output.push_back(segment);
    }

    fn on_handed_out(&mut self, segment: &Segment) {
        if let Some(text) = &segment.transcript_text {
            self.transcript.add_client_line(text);
        }
        self.awaited.extend(segment.awaited);
        if segment.ends_message
            && let Some(transaction) = &mut self.transaction
        {
            transaction.finish = Finish::HandedOut;
        }
    }

    fn take_reply(&mut self, reply: Reply) {
        let reply = self.without_secrets(reply);
        self.transcript.add_server_reply(&reply);
        if reply.is_closing() {
            return self.on_closing_reply(reply);
        }
        let Some(awaited) = self.awaited.pop_front() else {
            return self.on_unsolicited_reply(reply);
        };
        match awaited {
            Awaited::Banner => self.on_banner(reply),
            Awaited::Ehlo { is_again } => self.on_ehlo(is_again, reply),
            Awaited::Helo => self.on_helo(reply),
            Awaited::StartTls => self.on_starttls(reply),
            Awaited::AuthPlain | Awaited::AuthLogin | Awaited::AuthUsername | Awaited::AuthPassword => {
                self.on_auth(awaited, reply);
            }
            Awaited::MailFrom => self.on_mail_from(reply),
            Awaited::RcptTo => self.on_rcpt_to(reply),
            Awaited::Data => self.on_data(reply),
            Awaited::Chunk { .. } => self.on_chunk(awaited, reply),
            Awaited::Final => self.on_final(reply),
            Awaited::LoneDot => self.ready(),
            Awaited::Rset => self.on_rset(reply),
            Awaited::Quit => self.on_quit_reply(),
        }
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSession")
            .field("phase", &self.phase())
            .field("is_encrypted", &self.is_encrypted)
            .field("messages_tried", &self.messages_tried)
            .field("messages_accepted", &self.messages_accepted)
            .finish_non_exhaustive()
    }
}
