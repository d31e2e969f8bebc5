//! Finds servers and accounts by the names that the operator writes, using an index.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, ServerId};
use postroad_store::{Account, AccountFilter, Server, ServerFilter};

use super::AdminError;
use crate::App;

/// Maximum number of servers or accounts of one name that are read; as many deleted ones are read in addition.
const SAME_NAME_MAX: usize = 10;

#[boxed_futures]
impl App {
    /// Finds a server by id, `NAME` (if unique) or `ACCOUNT/NAME`.
    pub async fn find_server_id(&self, name_or_id: &str) -> Result<ServerId, AdminError> {
        Ok(self.find_server(name_or_id).await?.id)
    }

    /// The only server of the installation. Refuses if there is none, or more than one.
    pub async fn only_server_id(&self) -> Result<ServerId, AdminError> {
        match self.inner.store.list_servers_page(ServerFilter::default(), None, 2).await?.as_slice() {
            [only] => Ok(only.id),
            [] => {
                Err(AdminError::refused("there is no server yet; `postroad admin server create` creates one"))
            }
            _ => Err(AdminError::refused("there are several servers; say which one with --server")),
        }
    }

    pub(super) async fn find_server(&self, name_or_id: &str) -> Result<Server, AdminError> {
        let mut matching = self.servers_named(name_or_id, None).await?;
        if let Ok(id) = name_or_id.parse() {
            matching.extend(self.inner.store.find_server(ServerId(id)).await?);
        }
        // New names of servers and accounts have no slashes, but older ones may.
        for (at, _) in name_or_id.match_indices('/') {
            for account in self.accounts_named(&name_or_id[..at]).await? {
                matching.extend(self.servers_named(&name_or_id[at + 1..], Some(account.id)).await?);
            }
        }
        matching.sort_by_key(|server| server.id);
        matching.dedup_by_key(|server| server.id);
        match matching.as_slice() {
            [server] => Ok(server.clone()),
            [one, other, ..] => Err(AdminError::refused(format!(
                "several servers are called `{name_or_id}`: say {}/{} (id {}) or {}/{} (id {})",
                one.account_name, one.name, one.id, other.account_name, other.name, other.id
            ))),
            [] => Err(AdminError::refused(format!(
                "there is no server `{name_or_id}`; `postroad admin server list` shows them"
            ))),
        }
    }

    /// Finds an account by id or name.
    pub(super) async fn find_account(&self, name_or_id: &str) -> Result<Account, AdminError> {
        let mut matching = self.accounts_named(name_or_id).await?;
        if let Ok(id) = name_or_id.parse() {
            matching.extend(self.inner.store.find_account(AccountId(id)).await?);
        }
        matching.sort_by_key(|account| account.id);
        matching.dedup_by_key(|account| account.id);
        if matching.len() > 1 {
            // Accounts choose their own names, and may choose the name of another account.
            let ids: Vec<String> = matching.iter().map(|account| account.id.to_string()).collect();
            let ids = ids.join(", ");
            return Err(AdminError::refused(format!(
                "`{name_or_id}` means several accounts: give the id, one of {ids}"
            )));
        }
        matching.pop().ok_or_else(|| {
            AdminError::refused(format!(
                "there is no account `{name_or_id}`; `postroad admin account list` shows them"
            ))
        })
    }

    /// Servers with this name, including deleted ones that can be restored.
    async fn servers_named(
        &self,
        name: &str,
        account_id: Option<AccountId>,
    ) -> Result<Vec<Server>, AdminError> {
        let mut found = Vec::new();
        for deleted in [false, true] {
            let filter =
                ServerFilter { account_id, name: Some(name.to_owned()), deleted, ..ServerFilter::default() };
            found.extend(self.inner.store.list_servers_page(filter, None, SAME_NAME_MAX).await?);
        }
        Ok(found)
    }

    /// Accounts with this name, including deleted ones that can be restored.
    async fn accounts_named(&self, name: &str) -> Result<Vec<Account>, AdminError> {
        let mut found = Vec::new();
        for deleted in [false, true] {
            let filter = AccountFilter { name: Some(name.to_owned()), deleted, ..AccountFilter::default() };
            found.extend(self.inner.store.list_accounts_page(filter, None, SAME_NAME_MAX).await?);
        }
        Ok(found)
    }
}
