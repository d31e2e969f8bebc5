//! Admin commands for accounts.

use postroad_boxed_futures::boxed_futures;
use postroad_model::Timestamp;
use postroad_store::Account;
use serde_json::{Value, json};

use super::{AdminError, error_naming};
use crate::App;
use crate::accounts::{AccountCeilingsRequest, AccountUpdateRequest, Requester};

#[boxed_futures]
impl App {
    pub async fn create_account(&self, name: String) -> Result<Value, AdminError> {
        let created = self.create_account_as(&Requester::command_line(), &name, None).await;
        Ok(account_json(&created.map_err(error_naming(format!("the account `{}`", name.trim())))?.value))
    }

    pub async fn list_accounts(&self) -> Result<Value, AdminError> {
        Ok(self.inner.store.list_accounts().await?.iter().map(account_json).collect())
    }

    pub async fn show_account(&self, name: &str) -> Result<Value, AdminError> {
        Ok(account_json(&self.find_account(name).await?))
    }

    /// Suspends an account if there is a `reason`; otherwise resumes it.
    pub async fn suspend_account(&self, name: &str, reason: Option<String>) -> Result<Value, AdminError> {
        let id = self.find_account(name).await?.id;
        Ok(account_json(&self.set_account_suspension_as(&Requester::command_line(), id, reason).await?))
    }

    /// Changes ceilings of an account.
    pub async fn set_account_ceilings(
        &self,
        name: &str,
        ceilings: AccountCeilingsRequest,
    ) -> Result<Value, AdminError> {
        let (by, id) = (Requester::command_line(), self.find_account(name).await?.id);
        let request = AccountUpdateRequest { ceilings, ..AccountUpdateRequest::default() };
        Ok(account_json(&self.update_account_as(&by, id, request).await?))
    }

    pub async fn rename_account(&self, name: &str, new_name: String) -> Result<Value, AdminError> {
        let (by, id) = (Requester::command_line(), self.find_account(name).await?.id);
        let object = format!("the account `{new_name}`");
        let request = AccountUpdateRequest { name: Some(new_name), ..AccountUpdateRequest::default() };
        Ok(account_json(&self.update_account_as(&by, id, request).await.map_err(error_naming(object))?))
    }

    /// The account's ceilings, the numbers of its objects, and the numbers of its messages in the current hour, day and
    /// month. Only periods that have a limit are counted.
    pub async fn show_account_usage(&self, name: &str) -> Result<Value, AdminError> {
        let account = self.find_account(name).await?;
        let usage = self.account_usage(&Requester::command_line(), Some(account.id)).await?;
        let [hour, day, month] = usage.messages;
        Ok(json!({
            "account": account.name,
            "servers": usage.servers,
            "domains": usage.domains,
            "webhooks": usage.webhooks,
            "users": usage.users,
            "messages": { "hour": hour, "day": day, "month": month },
            "ceilings": usage.ceilings,
        }))
    }

    /// Deletes an account, or restores it.
    pub async fn set_account_deleted(&self, name: &str, deleted: bool) -> Result<Value, AdminError> {
        let (by, id) = (Requester::command_line(), self.find_account(name).await?.id);
        let account = if deleted {
            self.delete_account_as(&by, id).await
        } else {
            self.restore_account_as(&by, id).await
        };
        Ok(account_json(&account?))
    }
}

fn account_json(account: &Account) -> Value {
    json!({
        "id": account.id,
        "name": account.name,
        "suspended": account.suspended_reason.is_some(),
        "suspended_reason": account.suspended_reason,
        "delete_at": account.delete_at.map(Timestamp::to_rfc3339),
        "ceilings": account.ceilings,
        "created_at": account.created_at.to_rfc3339(),
        "updated_at": account.updated_at.to_rfc3339(),
    })
}
