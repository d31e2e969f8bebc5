//! Reasons that block sending, with their end: a cause for the program and a sentence for people.

use std::fmt;
use std::sync::Arc;

use postroad_model::{BounceClass, DomainName, GateAction, GateScope, Timestamp};
use postroad_store::{Gate, SetBy};

use crate::pacing::{Reader, Reason};

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
    /// Expected end, if it is known.
    pub(crate) until: Option<Timestamp>,
    pub(crate) cause: BlockCause,
}

#[derive(Debug, Clone)]
pub(crate) enum BlockCause {
    /// See `PauseCause`.
    Paused(String),
    Gate(Box<Gate>),
    /// No host of the site accepts messages, or too many DNS look-ups were waiting.
    BackOff {
        site: String,
        reason: String,
    },
    /// The receiver asked for a lower rate. `per_minute`: messages a minute that it seems to accept.
    TooFast {
        receiver: String,
        per_minute: u64,
        reason: Reason,
    },
    /// The receiver accepts no connection now.
    NoConnection {
        receiver: String,
        reason: Reason,
    },
    /// A receiver, or a domain, refuses everything; probes find out whether that has ended.
    Standstill {
        receiver: String,
        since: Timestamp,
        reason: Reason,
    },
    /// The usual rate for the provider is used up.
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
    /// The send rate of the account, which all its servers share.
    AccountRate {
        rate: String,
    },
    /// All connections that the message may use are busy.
    Connections {
        /// Site or provider with the limit; `None` for the node's own.
        to: Option<Arc<str>>,
        in_use: u32,
        limit: Option<u32>,
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

impl BlockCause {
    /// Whether the cause is a limit of our own, which delays messages but never fails one.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(
            self,
            Self::ServerRate { .. }
                | Self::AccountRate { .. }
                | Self::ProviderRate { .. }
                | Self::WarmUp { .. }
                | Self::Connections { .. }
        )
    }

    /// Bounce class of the delivery record of a long wait.
    pub(crate) fn bounce_class(&self) -> BounceClass {
        match self {
            Self::Dns { .. } | Self::NoAnswer { .. } => BounceClass::Dns,
            _ => BounceClass::Other,
        }
    }

    /// The sentence for this reader.
    pub(crate) fn text(&self, reader: Reader) -> String {
        match self {
            Self::Paused(reason) => format!("delivery is paused: {reason}"),
            Self::Gate(gate) => {
                let what = match gate.action {
                    GateAction::Suspend => "is stopped".to_owned(),
                    GateAction::Slow { per_minute } => format!("is slowed to {per_minute} a minute"),
                };
                let by = match (gate.automatic, gate.set_by) {
                    (true, _) => "Postroad",
                    (false, SetBy::Operator) => "the operator",
                    (false, SetBy::Account) => "an administrator of the account",
                };
                format!("{} {what} by {by}: {}", mail_of(&gate.scope), gate.reason)
            }
            Self::BackOff { site, reason } => format!("{site} could not be reached ({reason})"),
            Self::TooFast { receiver, per_minute, reason } => format!(
                "{receiver} seems to take about {per_minute} messages a minute from this address (it said: {})",
                reason.text(reader)
            ),
            Self::NoConnection { receiver, reason } => {
                format!("{receiver} takes no connection now (it said: {})", reason.text(reader))
            }
            Self::Standstill { receiver, since, reason } => format!(
                "{receiver} has refused everything since {}, and one message at a time tries again (it said: {})",
                since.to_rfc3339(),
                reason.text(reader)
            ),
            Self::ProviderRate { provider } => format!("the usual rate for {provider} is used up"),
            Self::WarmUp { source, provider, paused_reason: None } => {
                format!("today's warm-up quota of {source} for {provider} is used up")
            }
            Self::WarmUp { source, paused_reason: Some(reason), .. } => {
                format!("the warm-up of {source} is paused: {reason}")
            }
            Self::ServerSuspended { reason } => format!("the sending server is suspended: {reason}"),
            Self::ServerRate { rate } => format!("the server's send rate of {rate} is used up"),
            Self::AccountRate { rate } => format!("the account's send rate of {rate} is used up"),
            Self::Connections { to, in_use, limit } => {
                let to = to.as_ref().map_or_else(|| "of this node".to_owned(), |to| format!("to {to}"));
                match limit {
                    Some(limit) => format!("{in_use} of {limit} connections {to} are in use"),
                    None => format!("no further connection {to} was allowed ({in_use} in use)"),
                }
            }
            Self::Dns { domain } => format!("the DNS was asked where mail for {domain} goes"),
            Self::NoAnswer { domain, reason: None } => {
                format!("the DNS has not said yet where mail for {domain} goes")
            }
            Self::NoAnswer { domain, reason: Some(reason) } => {
                format!("the DNS does not say where mail for {domain} goes ({reason})")
            }
        }
    }
}

/// The mail that a gate applies to, in words. The server is not named, because the reader knows it.
fn mail_of(scope: &GateScope) -> String {
    match scope {
        GateScope::Everything => "all mail of this installation".to_owned(),
        GateScope::Server(_) => "all mail of the server".to_owned(),
        GateScope::Pool(pool) => format!("mail from the pool {pool}"),
        GateScope::Domain(domain) => format!("mail to {domain}"),
        GateScope::Lane { pool, domain } => format!("mail from the pool {pool} to {domain}"),
        GateScope::Provider(name) => format!("mail to the provider {name}"),
        GateScope::Path { source, site } => format!("mail from {source} to {site}"),
        GateScope::SourceProvider { source, provider } => {
            format!("mail from {source} to the provider {provider}")
        }
    }
}

impl Block {
    /// The sentence for this reader.
    pub(crate) fn text(&self, reader: Reader) -> String {
        let cause = self.cause.text(reader);
        match self.until {
            Some(until) => format!("{cause}; it continues at {}", until.to_rfc3339()),
            None => cause,
        }
    }
}

/// The sentence that anyone may read.
impl fmt::Display for BlockCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Reader::Anyone))
    }
}

#[cfg(test)]
mod tests {
    use postroad_model::ServerId;

    use super::*;

    #[test]
    fn a_gate_says_in_words_what_it_stops_and_who_set_it() {
        let text = |scope, action, automatic, set_by| {
            let (created_at, reason) = (Timestamp::from_micros(0), "moving".to_owned());
            let gate = Gate { scope, action, reason, automatic, set_by, created_at, ends_at: None };
            BlockCause::Gate(Box::new(gate)).to_string()
        };
        let server = || GateScope::Server(ServerId(1));
        assert_eq!(
            text(server(), GateAction::Suspend, false, SetBy::Account),
            "all mail of the server is stopped by an administrator of the account: moving"
        );
        assert_eq!(
            text(server(), GateAction::Slow { per_minute: 3 }, false, SetBy::Operator),
            "all mail of the server is slowed to 3 a minute by the operator: moving"
        );
        assert_eq!(
            text(GateScope::Provider("gmail".into()), GateAction::Suspend, true, SetBy::Operator),
            "mail to the provider gmail is stopped by Postroad: moving"
        );
    }

    #[test]
    fn a_reply_to_a_message_is_quoted_only_to_the_operator_and_the_server_of_the_message() {
        let (own, other) = (ServerId(1), ServerId(2));
        let reason = Reason::of_message("451 4.7.1 <jane@one.example>: too many messages", own);
        let (receiver, since) = ("mx.one.example".to_owned(), Timestamp::from_micros(0));
        for cause in [
            BlockCause::TooFast { receiver: receiver.clone(), per_minute: 60, reason: reason.clone() },
            BlockCause::Standstill { receiver, since, reason },
        ] {
            for reader in [Reader::Operator, Reader::Server(own)] {
                assert!(
                    cause
                        .text(reader)
                        .ends_with("(it said: 451 4.7.1 <jane@one.example>: too many messages)")
                );
            }
            // Delivery records and transcripts have the text for anyone.
            for text in [cause.text(Reader::Server(other)), cause.to_string()] {
                assert!(text.ends_with("(it said: 451 4.7.1)"), "{text}");
            }
        }
    }
}
