//! A send that passed every check, ready for `accept`.

use std::collections::BTreeMap;

use bytes::Bytes;
use postroad_model::{
    BatchId, CredentialId, Direction, DomainName, HoldReason, MessageId, MessageToken, PoolId, Protocol,
    SendId, ServerId, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::limit_values::{AccountLimits, LimitUse};
use crate::idempotency::{Idempotency, StoredAnswer};
use crate::messages::StoredBody;

/// Facts that all messages of a send share; never changed after acceptance.
#[derive(Debug, Clone)]
pub struct SendInfo {
    pub server_id: ServerId,
    pub id: SendId,
    pub credential_id: Option<CredentialId>,
    /// The Message-ID header without its angle brackets.
    pub message_id: String,
    pub mail_from: String,
    /// The domain of the From header; what analytics go by. Empty if there is none.
    pub from_domain: String,
    pub subject: String,
    pub tag: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub options: SendOptions,
    /// Bytes of the message before compression.
    pub size: u64,
    pub direction: Direction,
    pub bounce: bool,
    pub received_with_ssl: bool,
    pub test: bool,
    pub created_at: Timestamp,
}

/// Options of the sender that delivery and tracking act on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendOptions {
    /// Tracking of each recipient's copy. Boxed: most sends have none, and should not carry the room for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracking: Option<Box<SendTracking>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub require_tls: bool,
    /// Not before this time; also kept here because a held message has no queue entry to keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_at: Option<Timestamp>,
    /// Not after this time, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The pool to send from instead of the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_id: Option<PoolId>,
    /// The protocol it came in by, for the `Received` header.
    #[serde(skip_serializing_if = "Protocol::is_http")]
    pub protocol: Protocol,
    /// The host that took it, which its `Received` header and the installation's signature name, whoever sends it. Messages of
    /// older versions have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<DomainName>,
    /// The template that it was made of, by its alias, or by its id if it has none. Analytics go by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// A part of it is an attachment. Messages of older versions do not say.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub attachment: bool,
}

/// Tracking of the copies of a send, as decided when it was accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendTracking {
    /// Base of the tracked links: `https://track.example.com`.
    pub base_url: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub opens: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clicks: bool,
    /// Links to these hosts are left alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded_hosts: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsubscribe: Option<OwnUnsubscribe>,
}

/// One click that comes to us (RFC 8058).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnUnsubscribe {
    /// Another way, for those who write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mailto: Option<String>,
}

/// A send that passed every check, with all its ids.
#[derive(Debug)]
pub struct NewSend {
    pub info: SendInfo,
    pub body: StoredBody,
    pub recipients: Vec<NewRecipient>,
    pub state: InitialState,
    pub idempotency: Option<Idempotency>,
    /// The server's hourly limit, if it has one: recipients beyond it are held.
    pub hourly_limit: Option<u32>,
    /// Likewise its account's, which count the messages that the server's own limit leaves.
    pub account_limits: Option<AccountLimits>,
    /// The batch that it was sent with.
    pub batch_id: Option<BatchId>,
}

#[derive(Debug, Clone)]
pub struct NewRecipient {
    pub id: MessageId,
    pub token: MessageToken,
    pub rcpt_to: String,
    pub domain: DomainName,
    /// A simulator recipient: neither suppressed nor counted.
    pub exempt: bool,
}

/// The state a message starts in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitialState {
    /// To be delivered now.
    Pending,
    /// To be delivered at this time.
    Scheduled(Timestamp),
    /// Kept back, and why.
    Held { reason: HoldReason, details: String, expiry: Timestamp },
    /// Test mode: recorded as sent, never queued.
    TestSent { details: String },
}

/// Result of `accept`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// The send is on stable storage; with the limits that it counted against.
    Stored(Vec<LimitUse>),
    /// Its idempotency key had been used before; nothing was written.
    Repeated(StoredAnswer),
}

impl NewSend {
    /// Bytes this send adds to a batch; batches are bounded by it.
    pub(crate) fn weight(&self) -> usize {
        self.body.compressed().len() + 1_024 * self.recipients.len()
    }

    pub(crate) fn compressed(&self) -> &Bytes {
        self.body.compressed()
    }

    /// Whether its body is too large for a row.
    pub(crate) fn is_large(&self) -> bool {
        self.body.is_large()
    }
}
