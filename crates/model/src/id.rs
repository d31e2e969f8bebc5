//! Typed ids. All are integers below 2^53, so that JavaScript reads them exactly.

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
    /// Customer.
    AccountId,
    /// Sending environment of an account.
    ServerId,
    /// API key and its secret.
    CredentialId,
    /// Sending domain of a server or an account.
    DomainId,
    /// DKIM key of a domain.
    DomainKeyId,
    /// One send: the data that its recipients' messages share.
    SendId,
    /// Sends that one call of send/batch accepted.
    BatchId,
    /// One recipient's copy of one send.
    MessageId,
    /// One delivery record of a message, such as an attempt or a hold.
    DeliveryId,
    /// Event about a message or a server.
    EventId,
    /// Group of source addresses that servers send from.
    PoolId,
    /// Local address that mail leaves from.
    SourceId,
    /// Endpoint that receives events.
    WebhookId,
    /// One attempt to post an event to a webhook.
    WebhookAttemptId,
    /// A template or layout of a server.
    TemplateId,
    /// API key of an account or of the operator.
    AccountKeyId,
    /// Person who signs in to an account.
    UserId,
    /// One sign-in of a person, until the person signs out or the session expires.
    UserSessionId,
    /// Invitation of a person to an account.
    InvitationId,
    /// Link to the DNS records of a domain.
    DomainLinkId,
    /// Message search that a person has saved.
    SavedSearchId,
}
