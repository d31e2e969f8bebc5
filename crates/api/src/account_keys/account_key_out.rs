//! JSON form of an account's API key.

use crate::documented::ToSchema;
use postroad_model::Timestamp;
use postroad_store::AccountKey;
use serde::Serialize;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountKeyOut {
    id: i64,
    /// Id of the account; null for the operator's keys.
    account: Option<i64>,
    name: String,
    /// `full`, `read`, groups such as `servers`, or `servers:read`.
    scopes: Vec<String>,
    /// Networks it may be used from; empty for all.
    allow: Vec<String>,
    expires_at: Option<String>,
    revoked_at: Option<String>,
    last_used_at: Option<String>,
    created_at: String,
    updated_at: String,
}

/// A new key. It is shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewAccountKeyOut {
    #[serde(flatten)]
    key: AccountKeyOut,
    /// For the header X-Account-API-Key; null if an earlier call with the same idempotency key created it.
    api_key: Option<String>,
}

impl From<AccountKey> for AccountKeyOut {
    fn from(key: AccountKey) -> Self {
        let time = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
        Self {
            id: key.id.0,
            account: key.account_id.map(|id| id.0),
            name: key.name,
            scopes: key.scopes.iter().map(ToString::to_string).collect(),
            allow: key.allow.iter().map(ToString::to_string).collect(),
            expires_at: time(key.expires_at),
            revoked_at: time(key.revoked_at),
            last_used_at: time(key.last_used_at),
            created_at: key.created_at.to_rfc3339(),
            updated_at: key.updated_at.to_rfc3339(),
        }
    }
}

impl From<(Option<String>, AccountKey)> for NewAccountKeyOut {
    fn from((api_key, key): (Option<String>, AccountKey)) -> Self {
        Self { api_key, key: key.into() }
    }
}
