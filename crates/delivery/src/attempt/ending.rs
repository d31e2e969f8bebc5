//! End of an attempt, before classification.

use postroad_model::BounceClass;
use postroad_smtp::{Closed, EndCause, Outcome, Phase, Reply, Verdict};

#[derive(Debug, Clone)]
pub(crate) enum Ending {
    /// The peer has taken responsibility.
    Accepted(Reply),
    /// The peer refused this message.
    Refused { reply: Reply, phase: Phase },
    /// The message is larger than the peer accepts.
    TooLarge { size: u64, size_max: u64 },
    /// The peer does not support non-ASCII addresses or headers.
    Utf8NotOffered,
    /// The connection broke during the message. `after_last_byte`: its last bytes were sent, so it may have arrived.
    Interrupted { phase: Phase, problem: String, class: BounceClass, after_last_byte: bool },
    /// No host accepts messages: none could be reached, or `reply` refused the connection. The attempt counts only if a
    /// host was tried.
    Unreachable { problem: String, class: BounceClass, reply: Option<Reply>, was_tried: bool },
    /// The domain has no destination: temporarily with the class `dns`, otherwise permanently.
    NoRoute { problem: String, class: BounceClass },
    /// The message waited a long time without being offered to a host. `is_ours`: it waited for a limit of our own,
    /// which never fails a message.
    Waited { cause: String, class: BounceClass, is_ours: bool },
    /// The message's `expires_at` passed before its last bytes were sent.
    Expired,
    /// The stored message cannot be sent.
    Broken(String),
    /// An earlier process began to send the last bytes of the message, and ended before it recorded a reply.
    NoReply,
    /// A dead node had begun to send the message; the node's journal is not available.
    Abandoned,
}

impl Ending {
    /// The ending for a session's outcome. `None` if this service ended the session before the last bytes: it is
    /// stopping, the message expired, or the journal could not be written.
    pub(crate) fn of(outcome: Outcome, closed: Option<&Closed>, tls_problem: Option<&str>) -> Option<Self> {
        let Outcome { verdict, phase, after_last_byte } = outcome;
        Some(match verdict {
            Verdict::Accepted(reply) => Self::Accepted(reply),
            Verdict::Refused(reply) => Self::Refused { reply, phase },
            Verdict::TooLarge { size, size_max } => Self::TooLarge { size, size_max },
            Verdict::Utf8NotOffered => Self::Utf8NotOffered,
            Verdict::Interrupted => {
                if let Some(Closed::Ended { cause: EndCause::Stopped, .. }) = closed
                    && !after_last_byte
                {
                    return None;
                }
                let (problem, class) = closed.map_or_else(
                    || ("the connection ended".to_owned(), BounceClass::Protocol),
                    |closed| explain(closed, tls_problem),
                );
                Self::Interrupted { phase, problem, class, after_last_byte }
            }
        })
    }
}

/// Why a session ended, as a sentence, and its class.
pub(crate) fn explain(closed: &Closed, tls_problem: Option<&str>) -> (String, BounceClass) {
    match closed {
        Closed::Quit => ("the connection was closed".to_owned(), BounceClass::Protocol),
        Closed::ByServer { phase, .. } => {
            (format!("the server closed the connection ({phase})"), BounceClass::RateLimited)
        }
        Closed::Refused { phase, .. } => {
            (format!("the server refused the connection ({phase})"), BounceClass::Policy)
        }
        Closed::TlsNotOffered => {
            ("TLS is required and the server does not offer it".to_owned(), BounceClass::Protocol)
        }
        Closed::AuthNotOffered => {
            ("the server offers no way to authenticate".to_owned(), BounceClass::AuthFailure)
        }
        Closed::Protocol { error, .. } => (error.to_string(), BounceClass::Protocol),
        Closed::Ended { phase, cause } => match cause {
            EndCause::EndOfStream => {
                (format!("the server closed the connection without a word ({phase})"), BounceClass::Protocol)
            }
            EndCause::Io => (format!("the connection broke ({phase})"), BounceClass::Protocol),
            EndCause::TimedOut => {
                (format!("the server did not answer in time ({phase})"), BounceClass::Timeout)
            }
            EndCause::TlsFailed => {
                let problem = tls_problem.unwrap_or("no reason was given");
                (format!("TLS failed: {problem}"), BounceClass::Protocol)
            }
            EndCause::Stopped => ("this service was stopping".to_owned(), BounceClass::Other),
        },
    }
}
