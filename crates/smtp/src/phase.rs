//! Phases of a client session, and their time limits.
//!
//! The session has no clock: the driver reads the phase and sets its own timer.

use std::fmt;
use std::time::Duration;

/// Step that a session waits for; in a pipelined group, the oldest missing reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    Banner,
    Ehlo,
    /// EHLO was refused; HELO is tried.
    Helo,
    StartTls,
    /// The driver performs the handshake; it calls `tls_established` afterwards.
    TlsHandshake,
    /// Second EHLO, inside TLS.
    EhloAgain,
    Auth,
    /// A message may be sent.
    Ready,
    MailFrom,
    RcptTo,
    Data,
    /// The message's bytes are being sent, or a chunk before the last awaits its reply.
    Body,
    /// The last byte of the message was handed out; the reply decides.
    Final,
    Rset,
    Quit,
    Closed,
}

/// Each phase with its name in delivery records and its default limit.
const TABLE: [(Phase, &str, Option<Duration>); 16] = [
    (Phase::Banner, "banner", Some(Duration::from_mins(5))), // RFC 5321 4.5.3.2.1
    // The RFC's table has no entry for EHLO and HELO; tarpits reply to them as slowly as to MAIL.
    (Phase::Ehlo, "ehlo", Some(Duration::from_mins(5))),
    (Phase::Helo, "helo", Some(Duration::from_mins(5))),
    (Phase::StartTls, "starttls", Some(Duration::from_mins(2))),
    (Phase::TlsHandshake, "tls_handshake", Some(Duration::from_mins(1))),
    (Phase::EhloAgain, "ehlo_again", Some(Duration::from_mins(5))),
    (Phase::Auth, "auth", Some(Duration::from_mins(2))),
    // Nothing is awaited: the driver decides how long a connection may idle.
    (Phase::Ready, "ready", None),
    (Phase::MailFrom, "mail_from", Some(Duration::from_mins(5))), // RFC 5321 4.5.3.2.2
    (Phase::RcptTo, "rcpt_to", Some(Duration::from_mins(5))),     // RFC 5321 4.5.3.2.3
    (Phase::Data, "data", Some(Duration::from_mins(2))),          // RFC 5321 4.5.3.2.4
    (Phase::Body, "body", Some(Duration::from_mins(3))),          // RFC 5321 4.5.3.2.5, for each block
    (Phase::Final, "final", Some(Duration::from_mins(10))), // RFC 5321 4.5.3.2.6; a shorter one makes duplicates
    (Phase::Rset, "rset", Some(Duration::from_mins(1))),
    // The message is settled; a missing reply to QUIT costs nothing.
    (Phase::Quit, "quit", Some(Duration::from_secs(10))),
    (Phase::Closed, "closed", None),
];

impl Phase {
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(phase, ..)| *phase)
    }

    /// Default limit, counted from the start of the phase or the last byte that moved, whichever is later.
    pub const fn time_limit(self) -> Option<Duration> {
        TABLE[self as usize].2
    }

    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_phase_that_waits_for_the_peer_has_a_time_limit() {
        for (row, phase) in Phase::all().enumerate() {
            assert_eq!(phase as usize, row, "the rows are in the order of the phases");
            let waits = !matches!(phase, Phase::Ready | Phase::Closed);
            assert_eq!(phase.time_limit().is_some(), waits, "{phase}");
        }
        assert_eq!(Phase::Final.time_limit(), Some(Duration::from_mins(10)));
    }

    #[test]
    fn names_are_unique() {
        let names: HashSet<_> = Phase::all().map(Phase::name).collect();
        assert_eq!(names.len(), TABLE.len());
    }
}
