//! Typed ids. All are integers below 2^53, so that JavaScript clients read them exactly.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

ids! {
    /// A customer.
    AccountId,
    /// A sending environment of an account.
    ServerId,
    /// An API key and its secret.
    CredentialId,
    /// A sending domain of a server or an account.
    DomainId,
    /// A DKIM key of a domain.
    DomainKeyId,
    /// One send: what its recipients' messages share.
    SendId,
    /// One recipient's copy of one send.
    MessageId,
    /// One attempt (or hold, or returned bounce) of a message.
    DeliveryId,
    /// A fact about a message or a domain.
    EventId,
    /// A group of source addresses that servers send from.
    PoolId,
    /// An address of ours that mail leaves from.
    SourceId,
    /// An endpoint that is told of events.
    WebhookId,
    /// One attempt to tell it of one event.
    WebhookAttemptId,
}
