//! Bounce classes: why a message was refused. Shared by deliveries, events, webhooks and analytics.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! bounce_classes {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal),+ $(,)?) => {
        /// Why a message was refused. `as_str` is the field `bounce_class` of delivery records and `class` of events.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum BounceClass {
            $($(#[$doc])+ #[serde(rename = $name)] $variant),+
        }

        impl BounceClass {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

bounce_classes! {
    /// No such mailbox at that domain.
    BadMailbox = "bad_mailbox",
    /// The domain does not exist or accepts no mail.
    BadDomain = "bad_domain",
    /// The mailbox, or the receiving system, has no space left.
    Full = "full",
    /// The account exists but is disabled, suspended or closed.
    Inactive = "inactive",
    /// The receiver classified this message as spam.
    SpamBlock = "spam_block",
    /// Our address or domain has a bad reputation at the receiver, or is on a blocklist.
    Reputation = "reputation",
    /// A rule of the receiver forbids the message, whether the reply names that rule or not.
    Policy = "policy",
    /// Failed authentication: SPF, DKIM, DMARC, reverse DNS, or credentials at a smart host.
    AuthFailure = "auth_failure",
    /// Too much mail in a short time, or too many connections at once.
    RateLimited = "rate_limited",
    /// The message is larger than the receiver accepts.
    TooLarge = "too_large",
    /// The message itself is refused: virus, attachment type, broken format.
    Content = "content",
    /// A DNS look-up failed.
    Dns = "dns",
    /// A peer did not answer in time.
    Timeout = "timeout",
    /// A command was not understood or came at the wrong moment.
    Protocol = "protocol",
    /// The host does not accept mail for that domain from us.
    RelayingDenied = "relaying_denied",
    /// The reply does not say why.
    Other = "other",
}

impl BounceClass {
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|class| class.as_str() == text)
    }
}

impl fmt::Display for BounceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::BounceClass;

    #[test]
    fn every_class_is_read_back_from_its_text() {
        assert_eq!(BounceClass::ALL.len(), 16);
        for class in BounceClass::ALL {
            assert_eq!(BounceClass::parse(class.as_str()), Some(*class));
        }
        assert_eq!(BounceClass::parse("hard"), None);
    }
}
