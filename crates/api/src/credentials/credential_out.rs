//! JSON form of a credential.

use crate::documented::ToSchema;
use postroad_app::accounts::CreatedCredential;
use postroad_model::Timestamp;
use postroad_store::Credential;
use serde::Serialize;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CredentialOut {
    id: i64,
    /// Id of the server.
    server: i64,
    name: String,
    /// `full`, `send`, `read` or `address`. A key with `address` has no secret and only submits by SMTP, from the networks
    /// in `allow`.
    #[schema(example = "send")]
    scope: &'static str,
    /// Everything sent with it is in test mode.
    test: bool,
    /// Everything sent with it is held.
    hold: bool,
    /// Networks it may be used from; empty for all.
    allow: Vec<String>,
    expires_at: Option<String>,
    revoked_at: Option<String>,
    /// The credential that replaced it by rotation.
    replaced_by: Option<i64>,
    last_used_at: Option<String>,
    /// Incremented by every change; pass it as `if_version` to avoid overwriting a change that you have not seen.
    version: i64,
    created_at: String,
    updated_at: String,
}

/// A new credential. The key and the secret are shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewCredentialOut {
    #[serde(flatten)]
    credential: CredentialOut,
    /// User name for SMTP, and the header X-Server-API-Key; null if an earlier call with the same idempotency key
    /// created it.
    api_key: Option<String>,
    /// Password for SMTP; null if `api_key` is.
    api_secret: Option<String>,
}

impl From<Credential> for CredentialOut {
    fn from(credential: Credential) -> Self {
        let time = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
        Self {
            id: credential.id.0,
            server: credential.server_id.0,
            name: credential.name,
            scope: credential.scope.as_str(),
            test: credential.test,
            hold: credential.hold,
            allow: credential.allow.iter().map(ToString::to_string).collect(),
            expires_at: time(credential.expires_at),
            revoked_at: time(credential.revoked_at),
            replaced_by: credential.replaced_by.map(|id| id.0),
            last_used_at: time(credential.last_used_at),
            version: credential.version,
            created_at: credential.created_at.to_rfc3339(),
            updated_at: credential.updated_at.to_rfc3339(),
        }
    }
}

impl From<CreatedCredential> for NewCredentialOut {
    fn from(created: CreatedCredential) -> Self {
        let CreatedCredential { credential, api_key, api_secret } = created;
        Self { credential: credential.into(), api_key, api_secret }
    }
}
