//! Servers on the command line.

use postroad_model::ServerMode;
use postroad_store::{NewServer, Server};
use serde_json::{Value, json};

use super::{AdminError, check_name, taken};
use crate::App;

impl App {
    pub(super) async fn create_server(
        &self,
        name: String,
        account: &str,
        mode: ServerMode,
    ) -> Result<Value, AdminError> {
        check_name(&name)?;
        let account = self.find_account(account).await?;
        let what = format!("the server `{}/{name}`", account.name);
        let new = NewServer { account_id: account.id, name, mode };
        Ok(shown(&self.inner.store.create_server(new).await.map_err(taken(what))?))
    }

    pub(super) async fn list_servers(&self) -> Result<Value, AdminError> {
        Ok(self.inner.store.list_servers().await?.iter().map(shown).collect())
    }

    pub(super) async fn suspend_server(
        &self,
        given: &str,
        reason: Option<String>,
    ) -> Result<Value, AdminError> {
        let server = self.find_server(given).await?;
        self.inner.store.set_server_suspended(server.id, reason).await?;
        Ok(shown(&self.find_server(&server.id.to_string()).await?))
    }

    pub(super) async fn set_server_mode(&self, given: &str, mode: ServerMode) -> Result<Value, AdminError> {
        let server = self.find_server(given).await?;
        self.inner.store.set_server_mode(server.id, mode).await?;
        Ok(shown(&self.find_server(&server.id.to_string()).await?))
    }
}

fn shown(server: &Server) -> Value {
    json!({
        "id": server.id,
        "account": server.account_name,
        "name": server.name,
        "mode": server.mode,
        "suspended": server.suspended_reason.is_some(),
        "suspended_reason": server.suspended_reason,
        "created_at": server.created_at.to_rfc3339(),
        "updated_at": server.updated_at.to_rfc3339(),
    })
}
