//! What a server session tells and asks its driver.

use std::fmt;

use bytes::Bytes;

use super::envelope::{Envelope, MailFrom, RcptTo};
use super::replies::StandardReply;

/// In order; `Closed` is the last one. After a question nothing more comes until the driver has answered it with
/// `reply` or `accept`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Write the output, shake hands on the same socket, then call `tls_established`; or close it.
    StartTls,
    /// Question: are these credentials good?
    Auth(Login),
    /// Question: may this sender begin a message?
    Mail(MailFrom),
    /// Question: is there such a recipient?
    Rcpt(RcptTo),
    /// A message begins, to the recipients that were accepted.
    Message(Envelope),
    /// More of it, without the dots of DATA. Pieces are as the network cut them: append them to one buffer.
    Data(Bytes),
    /// Question: it is all here; is it accepted?
    EndOfData,
    /// Forget what there is of the message. The client hears the reason at its end, from the session.
    Dropped(DropCause),
    /// Forget what there is of the message: the client gave it up between two chunks.
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
    /// The client broke a rule or passed a limit.
    ForCause(StandardReply),
    /// The driver said 421, or `close`.
    ByDriver,
}

/// By AUTH PLAIN or LOGIN.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub username: String,
    pub password: String,
}

impl fmt::Debug for Login {
    /// Neither of them: with us the user name is an API key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}
