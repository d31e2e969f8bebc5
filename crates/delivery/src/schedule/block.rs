//! Why something may not be sent now, and until when: a cause for the program and a sentence for people.

use std::fmt;
use std::sync::Arc;

use postroad_model::{BounceClass, DomainName, GateAction, Timestamp};
use postroad_store::Gate;

/// Causes that pause all sending. Each is lifted by the part that raised it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PauseCause {
    /// The flight journal cannot be written.
    Journal,
    /// The store cannot take outcomes.
    Outcomes,
}

/// An obstacle to sending.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// `None`: until it is lifted.
    pub(crate) until: Option<Timestamp>,
    pub(crate) why: Why,
}

#[derive(Debug, Clone)]
pub(crate) enum Why {
    /// See `PauseCause`.
    Paused(String),
    Gate(Box<Gate>),
    /// No host of the site could be reached.
    BackOff {
        site: String,
        reason: String,
    },
    /// The receiver asked for a lower rate: messages a minute that it seems to accept.
    TooFast {
        receiver: String,
        per_minute: u64,
        reason: String,
    },
    /// The receiver accepts no connection now.
    NoConnection {
        receiver: String,
    },
    /// A receiver, or a domain, refuses everything; single test messages find out whether that has ended.
    Standstill {
        receiver: String,
        since: Timestamp,
        reason: String,
    },
    /// The provider's usual rate.
    ProviderRate {
        provider: String,
    },
    /// Today's quota of a new address is used up, or its warm-up is paused.
    WarmUp {
        source: String,
        provider: String,
        paused_reason: Option<String>,
    },
    ServerSuspended {
        reason: String,
    },
    ServerRate {
        rate: String,
    },
    /// All servers of the account share it.
    AccountRate {
        rate: String,
    },
    /// All connections that the site may have are busy.
    Connections {
        site: Arc<str>,
        connections: u32,
    },
    /// The route is not known yet.
    Dns {
        domain: DomainName,
    },
    /// The DNS gives no answer.
    NoAnswer {
        domain: DomainName,
        reason: Option<String>,
    },
}

impl Why {
    /// Our own limit: it delays messages, but never fails one.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(
            self,
            Self::ServerRate { .. }
                | Self::AccountRate { .. }
                | Self::ProviderRate { .. }
                | Self::WarmUp { .. }
        )
    }

    /// Bounce class of the delivery record of a long wait.
    pub(crate) fn bounce_class(&self) -> BounceClass {
        match self {
            Self::Dns { .. } | Self::NoAnswer { .. } => BounceClass::Dns,
            _ => BounceClass::Other,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused(reason) => write!(f, "delivery is paused: {reason}"),
            Self::Gate(gate) => {
                let what = match gate.action {
                    GateAction::Suspend => "is suspended".to_owned(),
                    GateAction::Slow { per_minute } => format!("is slowed to {per_minute} a minute"),
                };
                let by = if gate.automatic { "by Postroad" } else { "by an operator" };
                write!(f, "{} {what} {by}: {}", gate.scope, gate.reason)
            }
            Self::BackOff { site, reason } => write!(f, "{site} could not be reached ({reason})"),
            Self::TooFast { receiver, per_minute, reason } => write!(
                f,
                "{receiver} seems to take about {per_minute} messages a minute from this address (it said: {reason})"
            ),
            Self::NoConnection { receiver } => {
                write!(f, "{receiver} takes no connection now (it said: too many connections)")
            }
            Self::Standstill { receiver, since, reason } => write!(
                f,
                "{receiver} has refused everything since {}, and one message at a time tries again (it said: {reason})",
                since.to_rfc3339()
            ),
            Self::ProviderRate { provider } => write!(f, "the usual rate for {provider} is used up"),
            Self::WarmUp { source, provider, paused_reason: None } => {
                write!(f, "today's warm-up quota of {source} for {provider} is used up")
            }
            Self::WarmUp { source, paused_reason: Some(reason), .. } => {
                write!(f, "the warm-up of {source} is paused: {reason}")
            }
            Self::ServerSuspended { reason } => write!(f, "the sending server is suspended: {reason}"),
            Self::ServerRate { rate } => write!(f, "the server's send rate of {rate} is used up"),
            Self::AccountRate { rate } => write!(f, "the account's send rate of {rate} is used up"),
            Self::Connections { site, connections } => {
                write!(f, "no further connection to {site} was allowed ({connections} in use)")
            }
            Self::Dns { domain } => write!(f, "the DNS had to say where mail for {domain} goes"),
            Self::NoAnswer { domain, reason: None } => {
                write!(f, "the DNS has not said yet where mail for {domain} goes")
            }
            Self::NoAnswer { domain, reason: Some(reason) } => {
                write!(f, "the DNS does not say where mail for {domain} goes ({reason})")
            }
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)?;
        match self.until {
            Some(until) => write!(f, "; it continues at {}", until.to_rfc3339()),
            None => Ok(()),
        }
    }
}
