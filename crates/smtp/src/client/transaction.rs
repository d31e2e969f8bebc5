//! Transaction of one message to one recipient: in lock-step, pipelined up to DATA, or with BDAT.

use super::ClientSession;
use super::config::OutgoingMessage;
use super::envelope::{mail_line, rcpt_line};
use super::event::{Closed, Event, Outcome, ProtocolError, SendError, Verdict};
use super::output::{Awaited, Segment};
use crate::body::BodyCursor;
use crate::phase::Phase;
use crate::reply::{Reply, ReplyClass};
use crate::stuffing::{StuffedBody, terminator};

pub(super) struct Transaction {
    message: OutgoingMessage,
    /// Send several commands at once.
    is_pipelined: bool,
    /// Use BDAT instead of DATA.
    is_chunked: bool,
    /// Start of the next chunk, and number of bytes left from there.
    next_chunk: BodyCursor,
    unsent_bytes: u64,
    pub(super) finish: Finish,
    /// Whether the outcome was reported; only cleaning up follows.
    pub(super) is_decided: bool,
}

/// State of the message's last bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    Unannounced,
    /// `Event::Finishing` waits to be taken.
    Announced,
    Allowed,
    HandedOut,
}

impl ClientSession {
    /// Starts a message; its outcome is reported as an event.
    pub fn send(&mut self, message: OutgoingMessage) -> Result<(), SendError> {
        if self.phase() != Phase::Ready {
            return Err(SendError::NotReady);
        }
        if self.capabilities.messages_max.is_some_and(|max| self.messages_tried >= max) {
            return Err(SendError::LimitReached);
        }
        if let Some(verdict) = self.verdict_without_sending(&message) {
            let outcome = Outcome { verdict, phase: Phase::Ready, after_last_byte: false };
            self.events.extend([Event::Outcome(outcome), Event::Ready]);
            return Ok(());
        }
        self.messages_tried += 1;
        let offered = &self.capabilities;
        let is_pipelined = self.config.pipelining && offered.pipelining;
        let is_chunked = self.config.chunking && offered.chunking;
        let size = message.body.len();
        let next_chunk = BodyCursor::new(&message.body);
        let (mail, rcpt) = (mail_line(&message, offered), rcpt_line(&message));
        self.transaction = Some(Transaction {
            message,
            is_pipelined,
            is_chunked,
            next_chunk,
            unsent_bytes: size,
            finish: Finish::Unannounced,
            is_decided: false,
        });
        self.say(Segment::line(&mail, Awaited::MailFrom));
        if is_pipelined {
            self.say(Segment::line(&rcpt, Awaited::RcptTo));
            if !is_chunked {
                self.say(Segment::line("DATA", Awaited::Data)); // RFC 2920 3.1: last of its group
            } else if self.goes_with_envelope(size) {
                self.say_chunk(); // RFC 3030 4.2: BDAT may be pipelined too
            }
        }
        Ok(())
    }

    /// The verdict on a message that the server cannot accept; `None` if the message can be sent.
    fn verdict_without_sending(&self, message: &OutgoingMessage) -> Option<Verdict> {
        let size = message.body.len();
        let offered = &self.capabilities;
        match offered.size_max {
            Some(size_max) if size > size_max => Some(Verdict::TooLarge { size, size_max }),
            _ if message.needs_smtputf8() && !offered.smtputf8 => Some(Verdict::Utf8NotOffered),
            _ => None,
        }
    }

    /// Whether the message is sent together with its envelope, in one chunk of known and bounded size.
    fn goes_with_envelope(&self, size: u64) -> bool {
        size <= self.config.with_envelope_bytes_max && size <= self.config.chunk_bytes_max
    }

    pub(super) fn on_mail_from(&mut self, reply: Reply) {
        let Some(transaction) = &self.transaction else { return };
        let (is_pipelined, rcpt) = (transaction.is_pipelined, rcpt_line(&transaction.message));
        match reply.class() {
            ReplyClass::Positive if is_pipelined => {}
            ReplyClass::Positive => self.say(Segment::line(&rcpt, Awaited::RcptTo)),
            ReplyClass::Intermediate => self.on_invalid_reply(Phase::MailFrom, &reply),
            _ => {
                self.decide(Verdict::Refused(reply), Phase::MailFrom);
                if !is_pipelined {
                    self.ready();
                }
            }
        }
    }

    pub(super) fn on_rcpt_to(&mut self, reply: Reply) {
        match reply.class() {
            ReplyClass::Positive => {}
            ReplyClass::Intermediate => return self.on_invalid_reply(Phase::RcptTo, &reply),
            _ => self.decide(Verdict::Refused(reply), Phase::RcptTo),
        }
        let Some(transaction) = &self.transaction else { return };
        let has_more_under_way = !self.awaited.is_empty() || !self.output.is_empty();
        if has_more_under_way {
            // The replies to the other commands of the pipelined group come first.
        } else if transaction.is_decided {
            self.reset();
        } else if transaction.is_chunked {
            self.say_chunk();
        } else {
            self.say(Segment::line("DATA", Awaited::Data));
        }
    }

    pub(super) fn on_data(&mut self, reply: Reply) {
        let Some(transaction) = &self.transaction else { return };
        match (reply.class(), transaction.is_decided) {
            (ReplyClass::Intermediate, false) => {
                let body = &transaction.message.body;
                let content =
                    (!body.is_empty()).then(|| Segment::stuffed(StuffedBody::new(body), body.len()));
                let end = Segment::terminator(terminator(body), Awaited::Final).ending_message();
                self.output.extend(content.into_iter().chain([end]));
            }
            // RFC 2920 3.1: DATA was accepted although the recipient was refused; a lone dot ends the DATA.
            (ReplyClass::Intermediate, true) => self.say(Segment::terminator(b".\r\n", Awaited::LoneDot)),
            (_, true) => self.reset(),
            (ReplyClass::Positive, false) => self.on_invalid_reply(Phase::Data, &reply),
            (_, false) => {
                self.decide(Verdict::Refused(reply), Phase::Data);
                self.reset();
            }
        }
    }

    fn say_chunk(&mut self) {
        let Some(transaction) = &mut self.transaction else { return };
        let size = transaction.unsent_bytes.min(self.config.chunk_bytes_max.max(1));
        let is_last = size == transaction.unsent_bytes;
        let cursor = transaction.next_chunk.clone();
        transaction.next_chunk.skip(size as usize);
        transaction.unsent_bytes -= size;
        let line = format!("BDAT {size}{}", if is_last { " LAST" } else { "" }); // RFC 3030 2
        let awaited = Awaited::Chunk { is_last };
        if size == 0 {
            return self.say(Segment::line(&line, awaited).ending_message());
        }
        self.say(Segment::announcement(&line));
        let chunk = Segment::chunk(cursor, size as usize, awaited);
        self.say(if is_last { chunk.ending_message() } else { chunk });
    }

    pub(super) fn on_chunk(&mut self, awaited: Awaited, reply: Reply) {
        let is_decided = self.transaction.as_ref().is_none_or(|transaction| transaction.is_decided);
        let is_last = awaited == Awaited::Chunk { is_last: true };
        match reply.class() {
            ReplyClass::Positive if is_decided => self.ready(),
            ReplyClass::Positive if is_last => {
                self.decide(Verdict::Accepted(reply), Phase::Final);
                self.ready();
            }
            ReplyClass::Positive => self.say_chunk(),
            ReplyClass::Intermediate => self.on_invalid_reply(awaited.phase(), &reply),
            _ => {
                self.decide(Verdict::Refused(reply), awaited.phase());
                self.reset(); // RFC 3030 2: the state of the transaction is indeterminate
            }
        }
    }

    pub(super) fn on_final(&mut self, reply: Reply) {
        match reply.class() {
            ReplyClass::Positive => self.decide(Verdict::Accepted(reply), Phase::Final),
            ReplyClass::Intermediate => return self.on_invalid_reply(Phase::Final, &reply),
            _ => self.decide(Verdict::Refused(reply), Phase::Final),
        }
        self.ready(); // RFC 5321 4.1.1.4: the end of data clears the buffers, whatever the reply
    }

    pub(super) fn on_rset(&mut self, reply: Reply) {
        if reply.is_positive() {
            self.ready();
        } else {
            self.close_politely(Closed::Refused { phase: Phase::Rset, reply });
        }
    }

    /// Sends RSET before the next message: the server may still hold an envelope.
    fn reset(&mut self) {
        self.say(Segment::line("RSET", Awaited::Rset));
    }

    /// Ends the opening or the message: the next message may be sent.
    pub(super) fn ready(&mut self) {
        self.transaction = None;
        self.events.push_back(Event::Ready);
    }

    fn on_invalid_reply(&mut self, phase: Phase, reply: &Reply) {
        self.protocol_error_in(phase, ProtocolError::Unexpected(reply.code));
    }

    /// Whether the message's last bytes may be sent; the first call emits the event that asks the driver.
    pub(super) fn may_finish(&mut self) -> bool {
        let Some(transaction) = &mut self.transaction else { return true };
        if transaction.finish == Finish::Unannounced && !transaction.is_decided {
            transaction.finish = Finish::Announced;
            self.events.push_back(Event::Finishing);
        }
        transaction.is_decided || transaction.finish == Finish::Allowed
    }
}
