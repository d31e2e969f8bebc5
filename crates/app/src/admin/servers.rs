//! Admin commands for servers; their limits are in `ceilings`.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerMode, Timestamp};
use postroad_store::{AuditSubject, NewServer, Server, ServerChange};
use serde_json::{Value, json};

use super::{AdminError, check_name, taken};
use crate::App;
use crate::access::Operation;
use crate::accounts::Requester;

#[boxed_futures]
impl App {
    pub async fn create_server(
        &self,
        name: String,
        account: &str,
        mode: ServerMode,
        pool: Option<&str>,
    ) -> Result<Value, AdminError> {
        let name = check_name(&name)?;
        let account = self.find_account(account).await?;
        let pool_id = match pool {
            Some(name) => Some(self.find_pool(name).await?.id),
            None => None,
        };
        let what = format!("the server `{}/{name}`", account.name);
        let new = NewServer { account_id: account.id, name, mode, pool_id };
        let subject = AuditSubject::NewServer(account.id, new.name.clone());
        let store = self.by_operator(Operation::ServersCreate, subject);
        Ok(shown(&store.create_server(new).await.map_err(taken(what))?))
    }

    pub async fn list_servers(&self) -> Result<Value, AdminError> {
        Ok(self.inner.store.list_servers().await?.iter().map(shown).collect())
    }

    pub async fn suspend_server(
        &self,
        name_or_id: &str,
        reason: Option<String>,
    ) -> Result<Value, AdminError> {
        let server = self.find_server(name_or_id).await?;
        let operation = if reason.is_some() { Operation::ServersSuspend } else { Operation::ServersResume };
        let store = self.by_operator(operation, AuditSubject::Server(server.id));
        store.set_server_suspended(server.id, reason).await?;
        Ok(shown(&self.server_by_id(server.id).await?))
    }

    pub async fn rename_server(&self, name_or_id: &str, name: &str) -> Result<Value, AdminError> {
        let server = self.find_server(name_or_id).await?;
        let name = check_name(name)?;
        let what = format!("the server `{}/{name}`", server.account_name);
        let change = ServerChange { name: Some(name), ..ServerChange::default() };
        let renamed = self.changing_server(server.id).update_server(server.id, None, change).await;
        renamed.map_err(taken(what))?;
        Ok(shown(&self.server_by_id(server.id).await?))
    }

    /// Deletes a server, or takes the deletion back.
    pub async fn set_server_deleted(&self, name_or_id: &str, deleted: bool) -> Result<Value, AdminError> {
        let (by, id) = (Requester::command_line(), self.find_server(name_or_id).await?.id);
        let server =
            if deleted { self.delete_server(&by, id).await } else { self.restore_server(&by, id).await };
        Ok(shown(&server?))
    }
}

pub(super) fn shown(server: &Server) -> Value {
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
