//! Events and questions of a server session for its driver.

use std::fmt;

use bytes::Bytes;

use super::envelope::{Envelope, MailFrom, RcptTo};
use super::replies::StandardReply;

/// Reported in order; `Closed` is the last one. After a question only `Closed` can follow until the driver has answered
/// it with `reply` or `accept`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Write the output, perform the handshake on the same socket, then call `tls_established`; or close the
    /// socket.
    StartTls,
    /// Question: are these credentials valid?
    Auth(Login),
    /// Question: may this sender begin a message?
    Mail(MailFrom),
    /// Question: is this recipient accepted?
    Rcpt(RcptTo),
    /// A message to the accepted recipients begins.
    Message(Envelope),
    /// Next piece of the message, without the dots of DATA. Pieces are cut by the network: append them to one
    /// buffer.
    Data(Bytes),
    /// Question: the message is complete; is it accepted?
    EndOfData,
    /// Discard the received part of the message. The session replies with the reason at the end of DATA or of each
    /// chunk.
    Dropped(DropCause),
    /// Discard the received part of the message: the client gave it up between two chunks.
    Abandoned,
    /// Write the output, then close the socket.
    Closed(Closed),
}

impl Event {
    /// Whether the session waits for the driver.
    pub(super) fn is_question(&self) -> bool {
        matches!(self, Self::StartTls | Self::Auth(_) | Self::Mail(_) | Self::Rcpt(_) | Self::EndOfData)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropCause {
    BareNewline,
    Nul,
    LineTooLong,
    TooLarge,
}

impl DropCause {
    pub(super) fn reply(self) -> StandardReply {
        match self {
            Self::BareNewline => StandardReply::BareNewlineInMessage,
            Self::Nul => StandardReply::NulInMessage,
            Self::LineTooLong => StandardReply::TextLineTooLong,
            Self::TooLarge => StandardReply::TooLarge,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The client said QUIT.
    Quit,
    /// The client broke a rule or exceeded a limit.
    ForCause(StandardReply),
    /// The driver replied 421, or called `close`.
    ByDriver,
}

/// Credentials sent by AUTH PLAIN or LOGIN.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub username: String,
    pub password: String,
}

impl fmt::Debug for Login {
    /// Prints neither field: the user name is an API key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}
