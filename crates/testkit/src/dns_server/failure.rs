//! Failures of a name server.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// SERVFAIL.
    ServFail,
    /// REFUSED.
    Refused,
    /// Never answers, neither over UDP nor over TCP.
    Silent,
    /// Sets the truncation bit over UDP; answers over TCP.
    Truncated,
    /// Bytes that are not a DNS message, under the id of the query.
    Garbage,
    /// Correct answer under another id, as a forger would send it.
    WrongId,
    /// Correct answer, late.
    Slow(Duration),
    /// No records, no error, and no SOA.
    Empty,
    /// Refers to other name servers, which is not an answer.
    Referral,
}
