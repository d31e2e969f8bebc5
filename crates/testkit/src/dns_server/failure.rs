//! The ways in which a name server can let people down.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// "I could not find out."
    ServFail,
    /// "Not for you."
    Refused,
    /// Never answers, neither over UDP nor over TCP.
    Silent,
    /// Says over UDP that the answer does not fit; gives it over TCP.
    Truncated,
    /// Bytes that are no DNS message, under the id of the question.
    Garbage,
    /// The right answer under another id, as a forger would send it.
    WrongId,
    /// The right answer, late.
    Slow(Duration),
    /// No records, no error, and no SOA to say so with authority.
    Empty,
    /// "Ask somebody else", which is no answer.
    Referral,
}
