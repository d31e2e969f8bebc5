//! Admin commands for servers. Commands for their limits are in `ceilings`.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{Change, LimitedObject, ServerMode, Timestamp};
use postroad_store::Server;
use serde_json::{Value, json};

use super::{AdminError, error_naming};
use crate::accounts::{NewServerRequest, Requester, ServerUpdateRequest};
use crate::{App, ServerChangeRequest};

#[boxed_futures]
impl App {
    pub async fn create_server(
        &self,
        name: String,
        account: &str,
        mode: ServerMode,
        pool: Option<&str>,
    ) -> Result<Value, AdminError> {
        let account = self.find_account(account).await?;
        let pool = match pool {
            Some(name) => Some(self.find_pool(name).await?.id),
            None => None,
        };
        let object = format!("the server `{}/{}`", account.name, name.trim());
        let request = NewServerRequest { account: Some(account.id), name, mode, pool, idempotency_key: None };
        let created = self.create_server_as(&Requester::command_line(), request).await;
        let mut answer = server_json(&created.map_err(error_naming(object))?.value);
        self.add_ceiling_warning(&mut answer, account.id, LimitedObject::Servers).await;
        Ok(answer)
    }

    pub async fn list_servers(&self) -> Result<Value, AdminError> {
        Ok(self.inner.store.list_servers().await?.iter().map(server_json).collect())
    }

    pub async fn show_server(&self, name_or_id: &str) -> Result<Value, AdminError> {
        Ok(server_json(&self.find_server(name_or_id).await?))
    }

    /// Suspends a server if there is a `reason`; otherwise resumes it.
    pub async fn suspend_server(
        &self,
        name_or_id: &str,
        reason: Option<String>,
    ) -> Result<Value, AdminError> {
        let id = self.find_server(name_or_id).await?.id;
        Ok(server_json(&self.set_server_suspension_as(&Requester::command_line(), id, reason).await?))
    }

    pub async fn rename_server(&self, name_or_id: &str, name: &str) -> Result<Value, AdminError> {
        let server = self.find_server(name_or_id).await?;
        let object = format!("the server `{}/{}`", server.account_name, name.trim());
        let change = ServerChangeRequest { name: Some(name.to_owned()), ..ServerChangeRequest::default() };
        let renamed =
            self.update_server_as(&Requester::command_line(), server.id, update_of_settings(change)).await;
        Ok(server_json(&renamed.map_err(error_naming(object))?))
    }

    /// Deletes a server, or restores it.
    pub async fn set_server_deleted(&self, name_or_id: &str, deleted: bool) -> Result<Value, AdminError> {
        let (by, id) = (Requester::command_line(), self.find_server(name_or_id).await?.id);
        let server =
            if deleted { self.delete_server(&by, id).await } else { self.restore_server(&by, id).await };
        Ok(server_json(&server?))
    }
}

/// A request that changes settings, but neither the pool nor ceilings.
pub(super) fn update_of_settings(change: ServerChangeRequest) -> ServerUpdateRequest {
    let ceilings = ServerChangeRequest::default();
    ServerUpdateRequest { if_version: None, change, pool: Change::Keep, ceilings }
}

pub(super) fn server_json(server: &Server) -> Value {
    json!({
        "id": server.id,
        "account": server.account_name,
        "name": server.name,
        "mode": server.mode,
        "ip_pool": server.pool_id,
        "send_rate": server.send_rate,
        "hourly_limit": server.hourly_limit,
        "retention": server.retention,
        "ceilings": {
            "mode": server.ceilings.mode,
            "send_rate": server.ceilings.send_rate,
            "hourly_limit": server.ceilings.hourly_limit,
            "bodies_days": server.ceilings.bodies_days,
            "messages_days": server.ceilings.messages_days,
        },
        "suspended": server.suspended_reason.is_some(),
        "suspended_reason": server.suspended_reason,
        "delete_at": server.delete_at.map(Timestamp::to_rfc3339),
        "created_at": server.created_at.to_rfc3339(),
        "updated_at": server.updated_at.to_rfc3339(),
    })
}
