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

/// Data that all messages of a send share. After acceptance only an erasure changes these data.
#[derive(Debug, Clone)]
pub struct SendInfo {
    pub server_id: ServerId,
    pub id: SendId,
    pub credential_id: Option<CredentialId>,
    /// The Message-ID header without its angle brackets.
    pub message_id: String,
    pub mail_from: String,
    /// The domain of the From header, by which analytics are grouped. Empty if there is none.
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

/// Options of the sender, and facts about the acceptance, that delivery, tracking, analytics and searches use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendOptions {
    /// Tracking of each recipient's copy. Boxed, because most sends have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracking: Option<Box<SendTracking>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub require_tls: bool,
    /// Earliest time of delivery, as accepted. Stored in the options as well as in the queue, because a held message
    /// has no queue entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_at: Option<Timestamp>,
    /// Latest time of delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The pool to send from instead of the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_id: Option<PoolId>,
    /// The protocol of submission, for the `Received` header.
    #[serde(skip_serializing_if = "Protocol::is_http")]
    pub protocol: Protocol,
    /// The accepting host, which the `Received` header and the installation's signature name, whichever node sends.
    /// Absent in messages of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<DomainName>,
    /// Alias of the template that the message was rendered from, or its id if it has no alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Whether the message has an attachment; always false for messages of older versions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub attachment: bool,
}

/// Tracking of the copies of a send, decided at acceptance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SendTracking {
    /// Base of the tracked links: `https://track.example.com`.
    pub base_url: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub opens: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clicks: bool,
    /// Links to these hosts are not tracked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded_hosts: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsubscribe: Option<OneClickUnsubscribe>,
}

/// One-click unsubscription that Postroad handles (RFC 8058).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OneClickUnsubscribe {
    /// Alternative address for unsubscribing by mail.
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
    /// The server's hourly limit, if any: recipients beyond it are held.
    pub hourly_limit: Option<u32>,
    /// The account's limits, which count the messages that the server's own limit admits.
    pub account_limits: Option<AccountLimits>,
    /// The request `send/batch` to which the send belongs.
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

/// The initial state of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitialState {
    /// To be delivered now.
    Pending,
    /// To be delivered at this time.
    Scheduled(Timestamp),
    /// Held, with the reason.
    Held { reason: HoldReason, details: String, expiry: Timestamp },
    /// Test mode: recorded as sent, never queued.
    TestSent { details: String },
}

/// Result of `accept` and `accept_batch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// The send is on stable storage. Contains the usage of the limits that the send counted against.
    Stored(Vec<LimitUse>),
    /// The send's idempotency key was used before; nothing was written.
    Repeated(StoredAnswer),
}

impl NewSend {
    /// Approximate number of bytes that this send adds to the store's batch, whose size is limited.
    pub(crate) fn weight(&self) -> usize {
        self.body.compressed().len() + 1_024 * self.recipients.len()
    }

    pub(crate) fn compressed(&self) -> &Bytes {
        self.body.compressed()
    }

    /// Whether SQLite stores the send's body in a file.
    pub(crate) fn is_large(&self) -> bool {
        self.body.is_large()
    }
}
