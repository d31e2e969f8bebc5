//! Accounts, servers and credentials: what operators and customers set up.

use std::fmt;

use ipnet::IpNet;
use postroad_model::{AccountId, CredentialId, PoolId, Scope, SendRate, ServerId, ServerMode, Timestamp};
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct Account {
    pub id: AccountId,
    pub name: String,
    pub suspended_reason: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct NewServer {
    pub account_id: AccountId,
    pub name: String,
    pub mode: ServerMode,
}

#[derive(Debug, Clone)]
pub struct Server {
    pub id: ServerId,
    pub account_id: AccountId,
    pub account_name: String,
    pub name: String,
    pub mode: ServerMode,
    pub suspended_reason: Option<String>,
    /// Where its mail leaves from; `None` for the installation's default.
    pub pool_id: Option<PoolId>,
    /// Paces; never refuses.
    pub send_rate: Option<SendRate>,
    /// Messages an hour; those beyond it are held.
    pub hourly_limit: Option<u32>,
    pub tracking: ServerTracking,
    pub retention: ServerRetention,
    /// What its own key may not exceed.
    pub ceilings: super::Ceilings,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// How many days a server's mail is kept, where that is shorter than the installation's; `None`: as the installation's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ServerRetention {
    /// The text of messages.
    pub bodies_days: Option<u32>,
    /// Messages with everything about them.
    pub messages_days: Option<u32>,
}

/// What is tracked of a server's mail unless a domain or a message says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServerTracking {
    pub opens: bool,
    pub clicks: bool,
    /// Links to these hosts are left as they are.
    pub excluded_hosts: Vec<String>,
}

/// SHA-256 of an API key or secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(…)")
    }
}

#[derive(Debug, Clone)]
pub struct NewCredential {
    pub server_id: ServerId,
    pub name: String,
    pub key_hash: KeyHash,
    pub secret_hash: KeyHash,
    pub scope: Scope,
    /// Networks the key may be used from; empty for all.
    pub allow: Vec<IpNet>,
    pub hold: bool,
    pub test: bool,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct Credential {
    pub id: CredentialId,
    pub server_id: ServerId,
    pub name: String,
    pub key_hash: KeyHash,
    pub secret_hash: KeyHash,
    pub scope: Scope,
    pub allow: Vec<IpNet>,
    pub hold: bool,
    pub test: bool,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// The credential that rotation put in its place.
    pub replaced_by: Option<CredentialId>,
}

/// Everything a call needs to know of its key, read at once.
#[derive(Debug, Clone)]
pub struct CredentialAccess {
    pub credential: Credential,
    pub mode: ServerMode,
    /// Why the server or its account is suspended, if it is.
    pub suspended_reason: Option<String>,
    /// The server's limit of messages an hour.
    pub hourly_limit: Option<u32>,
    pub tracking: ServerTracking,
}
