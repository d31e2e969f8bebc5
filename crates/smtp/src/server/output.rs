//! Replies of the session, and its end.

use super::event::{Closed, Event};
use super::replies::StandardReply;
use super::transaction::Transaction;
use super::{ServerSession, State};
use crate::reply::Reply;

/// Longest line of a reply, with code and line end (RFC 5321 4.5.3.1.5).
const REPLY_LINE_BYTES_MAX: usize = 512;

impl ServerSession {
    pub(super) fn say_standard(&mut self, standard: StandardReply) {
        self.say(&standard.into());
    }

    pub(super) fn say(&mut self, reply: &Reply) {
        // A reply without a text is still a line (RFC 5321 4.2).
        let last = reply.lines.len().max(1) - 1;
        for index in 0..=last {
            let line = reply.lines.get(index).map_or("", String::as_str);
            let separator = if index == last { ' ' } else { '-' };
            let text: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let mut line = format!("{}{separator}{text}", reply.code);
            line.truncate(line.floor_char_boundary(REPLY_LINE_BYTES_MAX - 2));
            self.output.extend_from_slice(line.as_bytes());
            self.output.extend_from_slice(b"\r\n");
        }
    }

    /// Replies with the problem and counts it as an error of the client; closes the session after too many errors.
    pub(super) fn say_and_count_error(&mut self, problem: StandardReply) {
        self.say_standard(problem);
        self.errors += 1;
        if self.errors > self.config.limits.errors_max {
            self.close_for(StandardReply::TooManyErrors);
        }
    }

    /// Says why, and ends the session.
    pub(super) fn close_for(&mut self, cause: StandardReply) {
        self.say_standard(cause);
        self.end(Closed::ForCause(cause));
    }

    pub(super) fn on_quit(&mut self) {
        self.abandon();
        self.say_standard(StandardReply::Goodbye);
        self.end(Closed::Quit);
    }

    /// Ends the session without a reply: callers have said the last one.
    pub(super) fn end(&mut self, closed: Closed) {
        self.state = State::Closed;
        self.transaction = Transaction::None;
        self.input.clear();
        // Questions that the driver has not taken yet need no answer any more.
        self.events.retain(|event| !event.is_question());
        self.events.push_back(Event::Closed(closed));
    }
}
