//! Answers that the peer's rules give, and the context in which they decide.

use std::net::IpAddr;
use std::time::Duration;

/// Stages at which the peer answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    Banner,
    Ehlo,
    Helo,
    StartTls,
    /// Verdict on the credentials; the peer sends challenges itself.
    Auth,
    MailFrom,
    RcptTo,
    /// Reply to DATA: 354 or a refusal.
    Data,
    /// A chunk before the last one, or any chunk that comes at the wrong moment.
    Chunk,
    /// The message is complete, by dot or `BDAT … LAST`.
    Message,
    Rset,
    Quit,
    /// Any other command.
    Other,
}

/// Context for rules.
#[derive(Debug)]
pub struct RuleContext<'a> {
    pub stage: Stage,
    /// Address of the client.
    pub client: IpAddr,
    /// Counts from 1 over the life of the peer.
    pub connection: u32,
    /// Counts from 1 on this connection; 0 before the first MAIL.
    pub message: u32,
    /// The command; empty for the banner.
    pub line: &'a str,
    pub mail_from: &'a str,
    /// Recipients accepted so far.
    pub rcpt_to: &'a [String],
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) delay: Duration,
    pub(super) bytes: Vec<u8>,
    pub(super) then: AfterAnswer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterAnswer {
    Continue,
    Close,
    /// Sends nothing more and ignores all input, until the client disconnects.
    Stall,
}

impl Answer {
    /// Reply of one or several lines with codes; line ends are added.
    pub fn reply(lines: &str) -> Self {
        Self::raw(lines.lines().flat_map(|line| [line.trim(), "\r\n"]).collect::<String>().into_bytes())
    }

    /// Exactly these bytes, valid or not.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { delay: Duration::ZERO, bytes: bytes.into(), then: AfterAnswer::Continue }
    }

    /// Closes the connection without a reply.
    pub fn hang_up() -> Self {
        Self::raw("").then_close()
    }

    pub fn stall() -> Self {
        Self { then: AfterAnswer::Stall, ..Self::raw("") }
    }

    #[must_use]
    pub fn then_close(self) -> Self {
        Self { then: AfterAnswer::Close, ..self }
    }

    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}
