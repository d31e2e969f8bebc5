//! Reading the audit log, and checking that no entry was changed or removed. Each account's entries form a chain of
//! hashes.

use std::collections::HashMap;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, UserId};
use postroad_store::{
    AuditEntry, AuditFilter, AuditPage, AuditVerdict, HiddenActors, INSTALLATION, StoreError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{AccountRefusal, Requester};
use crate::App;
use crate::access::{Operation, Subject, permit};

/// Maximum number of steps of one `verify_audit` call; a step reads up to a thousand entries of one account's chain.
const STEPS_PER_CALL_MAX: usize = 50;

#[boxed_futures]
impl App {
    /// Lists entries, newest first. The operator reads the installation's own log as account 0.
    pub async fn list_audit(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        filter: AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<AuditPage, AccountRefusal> {
        let account_id = self.audited_account(by, account).await?;
        let filter = self.exclude_hidden_actors(by, account_id, filter).await?;
        let mut page = self.inner.store.list_audit(account_id, filter, before, limit).await?;
        self.complete_and_hide_actors(by, &mut page.entries).await?;
        Ok(page)
    }

    /// Lists entries for an export, oldest first: one page, starting after the entry `after`.
    pub async fn export_audit(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        filter: AuditFilter,
        after: i64,
        limit: usize,
    ) -> Result<AuditPage, AccountRefusal> {
        let account_id = self.audited_account(by, account).await?;
        let filter = self.exclude_hidden_actors(by, account_id, filter).await?;
        let mut page = self.inner.store.export_audit(account_id, filter, after, limit).await?;
        self.complete_and_hide_actors(by, &mut page.entries).await?;
        Ok(page)
    }

    /// Like `export_audit`, but as lines of JSON, one for each entry, as `postroad audit export` prints them. Also
    /// returns the position where the next page begins, if more entries may follow.
    pub async fn export_audit_lines(
        &self,
        by: &Requester,
        account: Option<AccountId>,
        filter: AuditFilter,
        after: i64,
        limit: usize,
    ) -> Result<(String, Option<i64>), AccountRefusal> {
        let AuditPage { entries, next } = self.export_audit(by, account, filter, after, limit).await?;
        let mut lines = String::new();
        for entry in &entries {
            lines.push_str(&audit_entry_json(entry).to_string());
            lines.push('\n');
        }
        Ok((lines, next))
    }

    /// Changes a filter by `actor_id` so that it finds no entry in which `complete_and_hide_actors` hides that id.
    async fn exclude_hidden_actors(
        &self,
        by: &Requester,
        account_id: AccountId,
        filter: AuditFilter,
    ) -> Result<AuditFilter, StoreError> {
        let Some(id) = filter.actor_id.filter(|_| !by.actor.is_operator()) else { return Ok(filter) };
        let hidden_actors = if self.is_person_of(account_id, UserId(id)).await? {
            HiddenActors::OperatorKeys
        } else {
            HiddenActors::OperatorKeysAndPeople
        };
        Ok(AuditFilter { hidden_actors, ..filter })
    }

    /// Fills in missing ids of people. Hides the operator from customers: they learn that the operator made a change,
    /// but neither the id of the key or person nor the address.
    async fn complete_and_hide_actors(
        &self,
        by: &Requester,
        entries: &mut [AuditEntry],
    ) -> Result<(), StoreError> {
        let mut own_people: HashMap<i64, bool> = HashMap::new();
        for entry in entries {
            // The person who accepts an invitation is created by that operation, so its entry has the actor id 0.
            if (entry.actor.as_str(), entry.actor_id, entry.subject.as_str()) == ("user", Some(0), "user") {
                entry.actor_id = entry.subject_id;
            }
            if by.actor.is_operator() {
                continue;
            }
            let is_operator = match (entry.actor.as_str(), entry.actor_id) {
                ("operator_key" | "command_line", _) => true,
                ("user", Some(id)) => {
                    let is_own = if let Some(is_own) = own_people.get(&id) {
                        *is_own
                    } else {
                        self.is_person_of(entry.account_id, UserId(id)).await?
                    };
                    own_people.insert(id, is_own);
                    !is_own
                }
                _ => false,
            };
            if is_operator {
                (entry.actor_id, entry.address) = (None, None);
            }
        }
        Ok(())
    }

    /// Whether a person belongs to the account, or did before being removed.
    async fn is_person_of(&self, account_id: AccountId, id: UserId) -> Result<bool, StoreError> {
        if let Some(user) = self.inner.store.find_user(id).await? {
            return Ok(user.account_id == account_id);
        }
        // A removed person is still a subject in the account's log.
        let filter = AuditFilter {
            subject: Some("user".to_owned()),
            subject_id: Some(id.0),
            ..AuditFilter::default()
        };
        Ok(!self.inner.store.list_audit(account_id, filter, None, 1).await?.entries.is_empty())
    }

    /// Refuses everybody but the operator: only the operator reads the installation's own log.
    pub fn check_installation_audit(&self, by: &Requester) -> Result<(), AccountRefusal> {
        permit(&by.actor, Operation::InstallationVerifyAudit, Subject::Installation)
            .map_err(AccountRefusal::Denied)
    }

    /// The account whose log is read, if the actor may read it; `INSTALLATION` for the installation's own log.
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
        let found = self.permitted_account_id(by, operation, account).await;
        // The log of an account stays when the account is removed.
        if matches!(found, Err(AccountRefusal::NotFound(_)))
            && let Some(id) = account.filter(|_| by.actor.is_operator())
            && self.inner.store.has_audit_log(id).await?
        {
            return Ok(id);
        }
        found
    }

    /// Checks a part of the chains of all accounts. Returns verdicts on the chains that end in this part, and the
    /// position where the next part begins.
    pub async fn verify_audit(
        &self,
        by: &Requester,
        from: AuditPosition,
    ) -> Result<(Vec<AuditVerdict>, Option<AuditPosition>), AccountRefusal> {
        permit(&by.actor, Operation::InstallationVerifyAudit, Subject::Installation)
            .map_err(AccountRefusal::Denied)?;
        let store = &self.inner.store;
        let (mut verdicts, mut position) = (Vec::new(), from);
        for _ in 0..STEPS_PER_CALL_MAX {
            let before = AccountId(position.account_id.0 - 1);
            let Some(account_id) = store.list_audited_accounts(before, 1).await?.pop() else {
                return Ok((verdicts, None));
            };
            if account_id != position.account_id {
                position = AuditPosition { account_id, ..AuditPosition::default() };
            }
            let verdict = store.verify_audit(account_id, position.seq, &position.hash).await?;
            if verdict.has_more {
                position = AuditPosition { account_id, seq: verdict.intact_count, hash: verdict.hash };
            } else {
                verdicts.push(verdict);
                position =
                    AuditPosition { account_id: AccountId(account_id.0 + 1), ..AuditPosition::default() };
            }
        }
        Ok((verdicts, Some(position)))
    }
}

/// Where a check of the log continues: after the entry `seq` of the account's chain. `hash` is the hash of that entry.
/// The default is the beginning of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AuditPosition {
    account_id: AccountId,
    seq: i64,
    hash: String,
}

impl Default for AuditPosition {
    fn default() -> Self {
        Self { account_id: INSTALLATION, seq: 0, hash: String::new() }
    }
}

/// JSON of an entry, as exports show it.
pub(crate) fn audit_entry_json(entry: &AuditEntry) -> Value {
    json!({
        "account": entry.account_id,
        "seq": entry.seq,
        "at": entry.at.to_rfc3339(),
        "actor": entry.actor,
        "actor_id": entry.actor_id,
        "address": entry.address,
        "operation": entry.operation,
        "subject": entry.subject,
        "subject_id": entry.subject_id,
        "before": entry.before,
        "after": entry.after,
    })
}
