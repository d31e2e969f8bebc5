//! Reading the audit log, and checking that nothing in it was changed.

use postroad_boxed_futures::boxed_futures;
use postroad_model::AccountId;
use postroad_store::{AuditEntry, AuditFilter, AuditVerdict, INSTALLATION};

use super::{AccountRefusal, Requester, page};
use crate::App;
use crate::access::{Operation, Subject, permit};

const ACCOUNTS_AT_ONCE: usize = 500;

#[boxed_futures]
impl App {
    /// Newest first, and whether there are more. With `account` 0 the operator reads the installation's own log.
    pub async fn list_audit(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        filter: AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<(Vec<AuditEntry>, bool), AccountRefusal> {
        let account_id = self.audited_account(by, account).await?;
        let found = self.inner.store.list_audit(account_id, filter, before, limit + 1).await?;
        Ok(page(found, limit))
    }

    /// Oldest first, starting after the entry `after`; for exports, one page at a time.
    pub async fn export_audit(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        filter: AuditFilter,
        after: i64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, AccountRefusal> {
        let account_id = self.audited_account(by, account).await?;
        Ok(self.inner.store.export_audit(account_id, filter, after, limit).await?)
    }

    async fn audited_account(
        &self,
        by: &Requester,
        account: Option<AccountId>,
    ) -> Result<AccountId, AccountRefusal> {
        let operation = Operation::AccountAudit;
        if account == Some(INSTALLATION) && by.actor.is_operator() {
            permit(&by.actor, operation, Subject::Installation).map_err(AccountRefusal::Denied)?;
            return Ok(INSTALLATION);
        }
        self.account_of(by, operation, account).await
    }

    /// Checks the chains of all accounts.
    pub async fn verify_audit(&self, by: &Requester) -> Result<Vec<AuditVerdict>, AccountRefusal> {
        permit(&by.actor, Operation::InstallationVerifyAudit, Subject::Installation)
            .map_err(AccountRefusal::Denied)?;
        let mut verdicts = Vec::new();
        let mut after = AccountId(-1);
        loop {
            let accounts = self.inner.store.list_audited_accounts(after, ACCOUNTS_AT_ONCE).await?;
            let Some(last) = accounts.last().copied() else { return Ok(verdicts) };
            for account_id in accounts {
                verdicts.push(self.inner.store.verify_audit(account_id).await?);
            }
            after = last;
        }
    }
}
