//! Events that a client session reports to its driver.

use crate::phase::Phase;
use crate::reply::Reply;
use crate::reply_reader::ReplyError;

/// Reported in order; `Closed` is the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Perform the TLS handshake on the same socket, then call `tls_established` or `connection_ended`.
    StartTls,
    /// `send` or `quit` may be called.
    Ready,
    /// The next bytes end the message. The session holds them back until this event is taken: record the flight in
    /// the journal then, before asking for more output.
    Finishing,
    /// Outcome of a message; exactly one per `send`. `Ready` or `Closed` follows.
    Outcome(Outcome),
    /// The session has ended. Write the remaining output of `fill_output` (a QUIT), then close the socket.
    Closed(Closed),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub verdict: Verdict,
    /// Phase of the deciding reply, or of the reply that is missing.
    pub phase: Phase,
    /// Whether the last byte of the message had been handed out.
    pub after_last_byte: bool,
}

impl Outcome {
    /// Whether the message may have been accepted although the reply was lost.
    pub fn is_possible_duplicate(&self) -> bool {
        self.after_last_byte && self.verdict == Verdict::Interrupted
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The peer is responsible now (RFC 5321 4.2.5).
    Accepted(Reply),
    /// A 4yz or 5yz reply, usually to the command of the outcome's phase; a host may also refuse without a command.
    Refused(Reply),
    /// The message is larger than the SIZE that the peer announced; nothing was sent (RFC 1870 6.1).
    TooLarge { size: u64, size_max: u64 },
    /// The message needs SMTPUTF8, which is not offered; nothing was sent (RFC 6531 3.2).
    Utf8NotOffered,
    /// The session ended without a valid reply; the following `Closed` says why.
    Interrupted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// After our QUIT.
    Quit,
    /// 421 at any point (RFC 5321 3.8).
    ByServer {
        phase: Phase,
        reply: Reply,
    },
    /// The peer refuses the session: banner, greeting, STARTTLS, AUTH or RSET was refused.
    Refused {
        phase: Phase,
        reply: Reply,
    },
    /// TLS is required and the peer does not offer it.
    TlsNotOffered,
    /// Credentials are configured but unusable: no common mechanism, or no TLS.
    AuthNotOffered,
    Protocol {
        phase: Phase,
        error: ProtocolError,
    },
    /// The driver called `connection_ended`.
    Ended {
        phase: Phase,
        cause: EndCause,
    },
}

/// Why the driver ended the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    /// The peer closed the connection without a reply.
    EndOfStream,
    /// Reading or writing failed.
    Io,
    /// The phase's deadline passed.
    TimedOut,
    /// The handshake failed, or the certificate is not the expected one.
    TlsFailed,
    /// The driver stopped the session on its own, for example at shutdown.
    Stopped,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    #[error(transparent)]
    Reply(#[from] ReplyError),
    /// Plaintext between STARTTLS and the handshake: injected, or from an untrustworthy peer.
    #[error("the server sent more after its answer to STARTTLS")]
    BytesAfterStartTls,
    #[error("the server sent {0} without a command")]
    Unsolicited(u16),
    #[error("{0} is not a valid reply to the command")]
    Unexpected(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("the session is not ready for a message")]
    NotReady,
    /// RFC 9422 MAILMAX: call `quit` and open another connection.
    #[error("the server takes no more messages in this session")]
    LimitReached,
}
