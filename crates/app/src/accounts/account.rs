//! An account's operations on itself: read, rename, usage. The operator passes the account's id.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, LimitedObject};
use postroad_store::{Account, AccountCeilings, AccountCeilingsChange, PeriodCounts};

use super::{AccountRefusal, Requester};
use crate::App;
use crate::access::Operation;

/// Numbers of an account's objects and messages, and its ceilings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountUsage {
    pub servers: usize,
    pub domains: usize,
    pub webhooks: usize,
    /// Number of people and open invitations.
    pub users: usize,
    /// Messages of this hour, day and month; `None` where no limit is set.
    pub messages: PeriodCounts,
    pub ceilings: AccountCeilings,
}

#[boxed_futures]
impl App {
    /// The actor's own account, or the account with the id that the operator passes.
    pub async fn find_own_account(
        &self,
        by: &Requester,
        requested: Option<AccountId>,
    ) -> Result<Account, AccountRefusal> {
        let operation = Operation::AccountGet;
        let id = self.permitted_account_id(by, operation, requested).await?;
        self.permitted_account(by, operation, id).await
    }

    pub async fn rename_own_account(
        &self,
        by: &Requester,
        requested: Option<AccountId>,
        if_version: Option<i64>,
        name: &str,
    ) -> Result<Account, AccountRefusal> {
        let operation = Operation::AccountUpdate;
        let id = self.permitted_account_id(by, operation, requested).await?;
        let ceilings = AccountCeilingsChange::default();
        self.change_account_as(by, operation, id, if_version, Some(name), ceilings).await
    }

    pub async fn account_usage(
        &self,
        by: &Requester,
        requested: Option<AccountId>,
    ) -> Result<AccountUsage, AccountRefusal> {
        let operation = Operation::AccountUsage;
        let id = self.permitted_account_id(by, operation, requested).await?;
        let ceilings = self.permitted_account(by, operation, id).await?.ceilings;
        let store = &self.inner.store;
        let counted = store.account_period_counts(id).await?;
        let limits = [ceilings.hourly_limit, ceilings.daily_limit, ceilings.monthly_limit];
        let messages = std::array::from_fn(|index| limits[index].map(|_| counted[index].unwrap_or(0)));
        Ok(AccountUsage {
            servers: store.count_objects(id, LimitedObject::Servers).await?,
            domains: store.count_objects(id, LimitedObject::Domains).await?,
            webhooks: store.count_objects(id, LimitedObject::Webhooks).await?,
            users: store.count_objects(id, LimitedObject::Users).await?,
            messages,
            ceilings,
        })
    }
}
