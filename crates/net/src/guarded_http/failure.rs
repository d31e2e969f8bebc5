//! Failures of an HTTP exchange, in classes that the log of webhook attempts shows.

use std::io;
use std::time::Duration;

use crate::dns::AddressFailure;

#[derive(Debug, thiserror::Error)]
pub enum HttpFailure {
    #[error("{0}")]
    Dns(#[from] AddressFailure),
    #[error(
        "the address of the URL is not one of the public internet; `webhooks.allow` (for hosts of links: `tracking.allow`) can allow it"
    )]
    RefusedAddress,
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("cannot connect: no answer within {} s", .0.as_secs_f32())]
    ConnectTimeout(Duration),
    #[error("the TLS handshake failed: {0}")]
    Tls(io::Error),
    #[error("the exchange took longer than {} s", .0.as_secs_f32())]
    Late(Duration),
    #[error("given up after {} s without an answer, because other receivers wait", .0.as_secs_f32())]
    Preempted(Duration),
    #[error("the HTTP conversation failed: {0}")]
    Protocol(hyper::Error),
}

/// Class of a failure, without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    Dns,
    RefusedAddress,
    Connect,
    Tls,
    Timeout,
    Protocol,
}

impl FailureClass {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::RefusedAddress => "refused_address",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
        }
    }
}

impl HttpFailure {
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Dns(_) => FailureClass::Dns,
            Self::RefusedAddress => FailureClass::RefusedAddress,
            Self::Connect(_) => FailureClass::Connect,
            Self::Tls(_) => FailureClass::Tls,
            Self::ConnectTimeout(_) | Self::Late(_) | Self::Preempted(_) => FailureClass::Timeout,
            Self::Protocol(_) => FailureClass::Protocol,
        }
    }
}
