//! Ends of a client session. A message in progress gets its outcome first.

use super::event::{Closed, EndCause, Event, Outcome, ProtocolError, SendError, Verdict};
use super::output::{Awaited, Segment};
use super::transaction::Finish;
use super::{ClientSession, Link};
use crate::phase::Phase;
use crate::reply::Reply;

impl ClientSession {
    /// Sends QUIT; only between messages.
    pub fn quit(&mut self) -> Result<(), SendError> {
        if self.phase() != Phase::Ready {
            return Err(SendError::NotReady);
        }
        self.say(Segment::line("QUIT", Awaited::Quit));
        Ok(())
    }

    /// Ends the session because the socket is closed, or because the driver gives up on it.
    pub fn connection_ended(&mut self, cause: EndCause) {
        let phase = self.phase();
        match phase {
            Phase::Closed => {}
            // RFC 5321 4.1.1.10 requires a reply to QUIT, but nothing depends on it.
            Phase::Quit => self.close(Closed::Quit),
            _ => self.close(Closed::Ended { phase, cause }),
        }
    }

    pub(super) fn on_quit_reply(&mut self) {
        self.close(Closed::Quit);
    }

    /// Ends the session after a 421, which may be the reply to any command, or arrive without one (RFC 5321 3.8).
    pub(super) fn on_closing_reply(&mut self, reply: Reply) {
        let phase = self.phase();
        if phase == Phase::Quit {
            return self.close(Closed::Quit);
        }
        self.decide(Verdict::Refused(reply.clone()), phase);
        self.close(Closed::ByServer { phase, reply });
    }

    /// Handles a reply that is not awaited: between messages, or before the command or message is completely
    /// sent.
    pub(super) fn on_unsolicited_reply(&mut self, reply: Reply) {
        let phase = self.phase();
        let code = reply.code;
        if reply.is_refusal() {
            // In the middle of a message: keep the reply as the reason, but send no dot, which would deliver half of
            // the message.
            self.decide(Verdict::Refused(reply), phase);
        }
        self.protocol_error_in(phase, ProtocolError::Unsolicited(code));
    }

    /// Ends the session because a command of the opening was refused, or got a reply that is not valid.
    pub(super) fn on_opening_failure(&mut self, phase: Phase, reply: Reply) {
        if reply.is_refusal() {
            self.close_politely(Closed::Refused { phase, reply });
        } else {
            self.protocol_error_in(phase, ProtocolError::Unexpected(reply.code));
        }
    }

    pub(super) fn protocol_error(&mut self, error: ProtocolError) {
        self.protocol_error_in(self.phase(), error);
    }

    pub(super) fn protocol_error_in(&mut self, phase: Phase, error: ProtocolError) {
        self.transcript.note(&error.to_string());
        // Decided here, not in `close`: the reply is no longer awaited, so `self.phase()` may be a later phase by now.
        self.decide(Verdict::Interrupted, phase);
        self.close(Closed::Protocol { phase, error });
    }

    /// Closes the session, and still sends QUIT, whose reply the closed session ignores (RFC 5321 3.1 asks refused
    /// clients to send QUIT).
    pub(super) fn close_politely(&mut self, closed: Closed) {
        self.close(closed);
        self.say(Segment::line("QUIT", Awaited::Quit));
    }

    fn close(&mut self, closed: Closed) {
        self.decide(Verdict::Interrupted, self.phase());
        self.link = Link::Closed;
        self.transaction = None;
        self.output.clear();
        self.awaited.clear();
        // Events that the driver has not taken yet must not start a handshake or a final dot any more.
        self.events.retain(|event| !matches!(event, Event::StartTls | Event::Finishing | Event::Ready));
        self.events.push_back(Event::Closed(closed));
    }

    /// Records the verdict; only the first one counts.
    pub(super) fn decide(&mut self, verdict: Verdict, phase: Phase) {
        let Some(transaction) = &mut self.transaction else { return };
        if transaction.is_decided {
            return;
        }
        transaction.is_decided = true;
        if matches!(verdict, Verdict::Accepted(_)) {
            self.messages_accepted += 1;
        }
        let after_last_byte = transaction.finish == Finish::HandedOut;
        self.events.push_back(Event::Outcome(Outcome { verdict, phase, after_last_byte }));
    }
}
