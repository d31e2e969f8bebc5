//! Effects of a refusal on later messages.

use postroad_model::BounceClass;
use serde::{Deserialize, Serialize};

use super::Phase;

/// Meaning of a refusal for pacing. Each signal applies at its own scope. A refusal that says nothing about other
/// messages has no signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Too many concurrent connections from this source address. Open ones continue.
    TooManyConnections,
    /// This connection has carried enough messages; the next one goes over a new connection.
    ConnectionUsedUp,
    /// Too many messages in this time from this source address.
    TooFast,
    /// The source address has a bad reputation at the receiver, or is blocked for a while.
    Reputation,
    /// The message looks like spam to the receiver. One such message says little about others.
    Content,
    /// A policy of this recipient or of its domain. It says nothing about the receiver's other domains.
    RecipientPolicy,
    /// Try again later, because this combination of sender, recipient and source address is new.
    Greylisted,
}

impl Signal {
    /// Effect of a class on pacing, unless a rule overrides it.
    pub(super) fn of_class(class: BounceClass) -> Self {
        match class {
            BounceClass::RateLimited => Self::TooFast,
            BounceClass::Reputation => Self::Reputation,
            BounceClass::SpamBlock => Self::Content,
            _ => Self::RecipientPolicy,
        }
    }

    /// The signal of a refusal in this phase. Before RCPT TO the receiver knows neither recipient nor content, so a
    /// policy refusal is about the source address.
    pub(super) fn for_phase(self, phase: Phase, class: BounceClass) -> Self {
        let is_policy = matches!(class, BounceClass::Policy | BounceClass::SpamBlock);
        match (self, phase) {
            (Self::RecipientPolicy | Self::Content, Phase::Greeting | Phase::MailFrom) if is_policy => {
                Self::Reputation
            }
            _ => self,
        }
    }

    /// The name in rules and in the output of `postroad explain reply`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooManyConnections => "too_many_connections",
            Self::ConnectionUsedUp => "connection_used_up",
            Self::TooFast => "too_fast",
            Self::Reputation => "reputation",
            Self::Content => "content",
            Self::RecipientPolicy => "recipient_policy",
            Self::Greylisted => "greylisted",
        }
    }
}
