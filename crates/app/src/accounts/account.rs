//! An account, as its own keys see it.

use postroad_boxed_futures::boxed_futures;
use postroad_model::AccountId;
use postroad_store::{Account, DomainFilter};

use super::{AccountRefusal, Requester};
use crate::App;
use crate::access::Operation;

/// Things are counted up to here.
const COUNTED_MAX: usize = 10_000;

/// How much an account has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountUsage {
    pub servers: usize,
    pub domains: usize,
}

#[boxed_futures]
impl App {
    /// The actor's own account, or the one that the operator names.
    pub async fn find_own_account(
        &self,
        by: &Requester,
        given: Option<AccountId>,
    ) -> Result<Account, AccountRefusal> {
        let operation = Operation::AccountGet;
        let id = self.account_of(by, operation, given).await?;
        self.customer(by, operation, id).await
    }

    pub async fn rename_own_account(
        &self,
        by: &Requester,
        given: Option<AccountId>,
        if_version: Option<i64>,
        name: &str,
    ) -> Result<Account, AccountRefusal> {
        let operation = Operation::AccountUpdate;
        let id = self.account_of(by, operation, given).await?;
        self.rename(by, operation, id, if_version, name).await
    }

    pub async fn account_usage(
        &self,
        by: &Requester,
        given: Option<AccountId>,
    ) -> Result<AccountUsage, AccountRefusal> {
        let id = self.account_of(by, Operation::AccountUsage, given).await?;
        let store = &self.inner.store;
        let servers = store.count_servers(id, COUNTED_MAX).await?;
        let domains = store.list_domains(DomainFilter::OfAccount(id), None, COUNTED_MAX).await?.len();
        Ok(AccountUsage { servers, domains })
    }
}
