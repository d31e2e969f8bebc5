//! JSON form of a server, as its account sees it.

use postroad_model::Timestamp;
use postroad_store::Server;
use serde::Serialize;
use utoipa::ToSchema;

use crate::server_settings::ServerOut;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountServerOut {
    #[serde(flatten)]
    settings: ServerOut,
    /// Id of the account.
    account: i64,
    suspended: bool,
    suspended_reason: Option<String>,
    /// Until when a deleted server can be restored; null for others.
    delete_at: Option<String>,
    /// Counted up by every change; give it as `if_version` to change only what you have seen.
    version: i64,
}

impl From<Server> for AccountServerOut {
    fn from(server: Server) -> Self {
        Self {
            account: server.account_id.0,
            suspended: server.suspended_reason.is_some(),
            suspended_reason: server.suspended_reason.clone(),
            delete_at: server.delete_at.map(Timestamp::to_rfc3339),
            version: server.version,
            settings: server.into(),
        }
    }
}
