//! Account keys and operator keys as rows of their lists.

use postroad_model::Timestamp;
use postroad_store::AccountKey;

use crate::display::When;

/// A key of an account, or of the operator.
pub(crate) struct KeyRow {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) scopes: String,
    pub(crate) networks: String,
    /// `Revoked` or `Expired`; `None` while the key works.
    pub(crate) ended: Option<&'static str>,
    pub(crate) expires_at: Option<When>,
    pub(crate) last_used_at: Option<When>,
    pub(crate) created_at: When,
}

/// Result of the form for a new key.
pub(crate) enum NewKeyResult {
    /// The form was not sent, or was refused.
    Nothing,
    /// A new key, shown only this time.
    New(String),
    /// The form was sent a second time; the key was shown before.
    Before,
}

pub(crate) fn key_row(key: AccountKey, now: Timestamp) -> KeyRow {
    let ended = match &key {
        AccountKey { revoked_at: Some(_), .. } => Some("Revoked"),
        AccountKey { expires_at: Some(at), .. } if *at <= now => Some("Expired"),
        _ => None,
    };
    let scopes: Vec<String> = key.scopes.iter().map(ToString::to_string).collect();
    let networks: Vec<String> = key.allow.iter().map(ToString::to_string).collect();
    KeyRow {
        id: key.id.0,
        scopes: scopes.join(", "),
        networks: networks.join(", "),
        ended,
        expires_at: key.expires_at.map(When),
        last_used_at: key.last_used_at.map(When),
        created_at: When(key.created_at),
        name: key.name,
    }
}
