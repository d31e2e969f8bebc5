//! The operator's operations on accounts: create, list, change, suspend, delete and restore.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::AccountId;
use postroad_store::{Account, AccountCeilingsChange, AccountFilter, AuditSubject, StoreError, UpdateResult};

use super::ceilings::AccountCeilingsRequest;
use super::recording::{Created, CreationKey};
use super::servers::origin_of;
use super::{AccountRefusal, ObjectKind, Requester, page};
use crate::access::{Operation, Subject, permit, permit_any};
use crate::{App, names};

/// How long a deleted account can be restored.
const RESTORE_TIME: Duration = Duration::from_hours(7 * 24);

#[derive(Debug, Clone, Default)]
pub struct AccountUpdateRequest {
    /// The version that the caller has seen.
    pub if_version: Option<i64>,
    pub name: Option<String>,
    pub ceilings: AccountCeilingsRequest,
}

#[boxed_futures]
impl App {
    pub async fn create_account_as(
        &self,
        by: &Requester,
        name: &str,
        key: Option<&CreationKey>,
    ) -> Result<Created<Account>, AccountRefusal> {
        let operation = Operation::AccountsCreate;
        permit(&by.actor, operation, Subject::Installation).map_err(AccountRefusal::Denied)?;
        if let Some(id) = self.find_created_id(None, key).await? {
            let value = self.permitted_account(by, operation, AccountId(id)).await?;
            return Ok(Created { value, is_replay: true });
        }
        if let Some(problem) = names::find_account_problem(name) {
            return Err(AccountRefusal::problem("name", problem));
        }
        let name = name.trim().to_owned();
        let subject = AuditSubject::NewAccount(name.clone());
        let creation = key.map(|key| (postroad_store::INSTALLATION, key));
        let created =
            self.audited_store_for_creation(by, operation, subject, creation).create_account(name).await;
        // A concurrent call with the same idempotency key may have created the account.
        if matches!(created, Err(StoreError::Conflict))
            && let Some(id) = self.find_created_id(None, key).await?
        {
            let value = self.permitted_account(by, operation, AccountId(id)).await?;
            return Ok(Created { value, is_replay: true });
        }
        Ok(Created {
            value: created.map_err(AccountRefusal::from_store_error_on(ObjectKind::Account))?,
            is_replay: false,
        })
    }

    /// Returns a page ordered by id, and whether there are more.
    pub async fn list_accounts_as(
        &self,
        by: &Requester,
        filter: AccountFilter,
        after: Option<AccountId>,
        limit: usize,
    ) -> Result<(Vec<Account>, bool), AccountRefusal> {
        permit(&by.actor, Operation::AccountsList, Subject::Installation).map_err(AccountRefusal::Denied)?;
        let found = self.inner.store.list_accounts_page(filter, after, limit + 1).await?;
        Ok(page(found, limit))
    }

    pub async fn find_account_as(&self, by: &Requester, id: AccountId) -> Result<Account, AccountRefusal> {
        self.permitted_account(by, Operation::AccountsGet, id).await
    }

    pub async fn update_account_as(
        &self,
        by: &Requester,
        id: AccountId,
        request: AccountUpdateRequest,
    ) -> Result<Account, AccountRefusal> {
        let operation = Operation::AccountsUpdate;
        self.permitted_account(by, operation, id).await?;
        let ceilings = self.check_account_ceilings(request.ceilings)?;
        let name = request.name.as_deref();
        self.change_account_as(by, operation, id, request.if_version, name, ceilings).await
    }

    pub(super) async fn change_account_as(
        &self,
        by: &Requester,
        operation: Operation,
        id: AccountId,
        if_version: Option<i64>,
        name: Option<&str>,
        ceilings: AccountCeilingsChange,
    ) -> Result<Account, AccountRefusal> {
        if let Some(problem) = name.and_then(names::find_account_problem) {
            return Err(AccountRefusal::problem("name", problem));
        }
        let name = name.map(|name| name.trim().to_owned());
        let store = self.audited_store(by, operation, AuditSubject::Account(id));
        let updated = store.update_account(origin_of(by), id, if_version, name, ceilings).await;
        self.forget_setup();
        match updated.map_err(AccountRefusal::from_store_error_on(ObjectKind::Account))? {
            UpdateResult::Done(account) => Ok(account),
            UpdateResult::OtherVersion(version) => Err(AccountRefusal::OtherVersion(version)),
        }
    }

    /// Suspends the account if there is a `reason`; otherwise resumes it.
    pub async fn set_account_suspension_as(
        &self,
        by: &Requester,
        id: AccountId,
        reason: Option<String>,
    ) -> Result<Account, AccountRefusal> {
        let operation = if reason.is_some() { Operation::AccountsSuspend } else { Operation::AccountsResume };
        self.permitted_account(by, operation, id).await?;
        if let Some(problem) = reason.as_deref().and_then(names::find_reason_problem) {
            return Err(AccountRefusal::problem("reason", problem));
        }
        self.audited_store(by, operation, AuditSubject::Account(id))
            .set_account_suspended(id, reason)
            .await?;
        self.forget_setup();
        self.permitted_account(by, operation, id).await
    }

    /// Deletes an account. The keys of the account and of its servers stop working at once, on other nodes within two
    /// seconds. The data stays for seven days, during which the account can be restored.
    pub async fn delete_account_as(&self, by: &Requester, id: AccountId) -> Result<Account, AccountRefusal> {
        let operation = Operation::AccountsDelete;
        self.permitted_account(by, operation, id).await?;
        if self.find_service_account().await?.is_some_and(|(_, account_id)| account_id == id) {
            return Err(AccountRefusal::problem(
                "id",
                "is the account of the service's own mail, which stays",
            ));
        }
        let delete_at = self.inner.clock.now().plus(RESTORE_TIME);
        let store = self.audited_store(by, operation, AuditSubject::Account(id));
        let deleted = store.set_account_deleted(id, Some(delete_at)).await;
        self.forget_setup();
        deleted.map_err(AccountRefusal::from_store_error_on(ObjectKind::Account))
    }

    pub async fn restore_account_as(&self, by: &Requester, id: AccountId) -> Result<Account, AccountRefusal> {
        let operation = Operation::AccountsRestore;
        permit(&by.actor, operation, Subject::Installation).map_err(AccountRefusal::Denied)?;
        let store = self.audited_store(by, operation, AuditSubject::Account(id));
        let restored = store.set_account_deleted(id, None).await;
        self.forget_setup();
        restored.map_err(AccountRefusal::from_store_error_on(ObjectKind::Account))
    }

    /// Finds an account that is not deleted and on which `by` may perform `operation`.
    pub(super) async fn permitted_account(
        &self,
        by: &Requester,
        operation: Operation,
        id: AccountId,
    ) -> Result<Account, AccountRefusal> {
        permit_any(&by.actor, operation).map_err(AccountRefusal::Denied)?;
        let found = self.inner.store.find_account(id).await?.filter(|account| account.delete_at.is_none());
        let subject = found.as_ref().map_or(Subject::Absent, |account| Subject::Account(account.id));
        permit(&by.actor, operation, subject).map_err(AccountRefusal::from_denial_on(ObjectKind::Account))?;
        found.ok_or(AccountRefusal::NotFound(ObjectKind::Account))
    }
}
