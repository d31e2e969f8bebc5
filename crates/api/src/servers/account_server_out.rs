//! JSON form of a server, as its account sees it.

use crate::documented::ToSchema;
use postroad_model::Timestamp;
use postroad_store::Server;
use serde::Serialize;

use crate::server_settings::ServerOut;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountServerOut {
    #[serde(flatten)]
    settings: ServerOut,
    /// Id of the account.
    account: i64,
    /// Id of the pool that its mail leaves from; null for the shared pool.
    ip_pool: Option<i64>,
    suspended: bool,
    suspended_reason: Option<String>,
    /// Until when a deleted server can be restored; null for others.
    delete_at: Option<String>,
}

impl From<Server> for AccountServerOut {
    fn from(server: Server) -> Self {
        Self {
            account: server.account_id.0,
            ip_pool: server.pool_id.map(|id| id.0),
            suspended: server.suspended_reason.is_some(),
            suspended_reason: server.suspended_reason.clone(),
            delete_at: server.delete_at.map(Timestamp::to_rfc3339),
            settings: server.into(),
        }
    }
}
