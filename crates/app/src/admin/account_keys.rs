//! Admin commands for API keys of accounts and of the operator, and for the audit log.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, AccountKeyId, Timestamp};
use postroad_store::{AccountKey, AccountKeyFilter, AuditFilter, AuditPage, INSTALLATION};
use serde_json::{Value, json};

use super::{AdminError, whole_list, whole_list_or};
use crate::App;
use crate::accounts::{AccountKeyRequest, AuditPosition, Requester, audit_entry_json};

/// Maximum number of keys that one list shows.
const LISTED_MAX: usize = 10_000;
/// Entries in one part of an export, so that answers on the control socket stay small.
const ENTRIES_PER_EXPORT_PART: usize = 500;

#[boxed_futures]
impl App {
    /// Creates a key of an account, or of the operator if there is no account.
    pub async fn create_account_key_by_name(
        &self,
        account: Option<&str>,
        request: AccountKeyRequest,
    ) -> Result<Value, AdminError> {
        let by = Requester::command_line();
        let created = match account {
            Some(account) => {
                let id = self.find_account(account).await?.id;
                self.create_account_key(&by, Some(id), request).await?
            }
            None => self.create_operator_key(&by, request).await?,
        };
        let mut answer = json!({ "id": created.key.id, "api_key": created.api_key });
        if let (Some(answer), Value::Object(rest)) = (answer.as_object_mut(), account_key_json(&created.key))
        {
            answer.extend(rest);
        }
        Ok(answer)
    }

    /// Lists keys of an account, or of the operator if there is no account.
    pub async fn show_account_keys(&self, account: Option<&str>) -> Result<Value, AdminError> {
        let by = Requester::command_line();
        let keys = if let Some(account) = account {
            let id = self.find_account(account).await?.id;
            let filter = AccountKeyFilter::default();
            let found = self.list_account_keys(&by, Some(id), filter, None, LISTED_MAX).await?;
            whole_list(found, "keys", "account_keys/list")?
        } else {
            let found = self.list_operator_keys(&by, None, LISTED_MAX).await?;
            whole_list_or(found, "keys", "the portal lists them in pages (Operator, Operator keys)")?
        };
        Ok(keys.iter().map(account_key_json).collect())
    }

    pub async fn revoke_account_key_by_name(
        &self,
        account: Option<&str>,
        id: AccountKeyId,
    ) -> Result<Value, AdminError> {
        let by = Requester::command_line();
        let revoked = match account {
            Some(account) => {
                let account_id = self.find_account(account).await?.id;
                self.revoke_account_key(&by, Some(account_id), id).await?
            }
            None => self.revoke_operator_key(&by, id).await?,
        };
        Ok(account_key_json(&revoked))
    }

    /// One page of the audit log of an account, or of the installation if `account` is `None`; oldest first. `next` is
    /// the position where the next page begins, if more entries may follow.
    pub async fn show_audit(
        &self,
        account: Option<&str>,
        filter: AuditFilter,
        after: i64,
    ) -> Result<Value, AdminError> {
        let id = match account {
            Some(account) => self.find_audited_account(account).await?,
            None => INSTALLATION,
        };
        let by = Requester::command_line();
        let AuditPage { entries, next } =
            self.export_audit(&by, Some(id), filter, after, ENTRIES_PER_EXPORT_PART).await?;
        Ok(json!({ "entries": entries.iter().map(audit_entry_json).collect::<Vec<_>>(), "next": next }))
    }

    /// Finds an account, or by its id a removed account whose audit log remains.
    async fn find_audited_account(&self, name_or_id: &str) -> Result<AccountId, AdminError> {
        let found = self.find_account(name_or_id).await;
        if found.is_err()
            && let Ok(id) = name_or_id.parse().map(AccountId)
            && self.inner.store.has_audit_log(id).await?
        {
            return Ok(id);
        }
        Ok(found?.id)
    }

    /// Checks a part of the audit log. Fails if a chain in this part is broken, or if an entry that
    /// `expected` lists as `ACCOUNT:SEQ:HASH` is missing or differs. `next` is the position where the next part begins.
    pub async fn check_audit(&self, expected: &[String], from: AuditPosition) -> Result<Value, AdminError> {
        let (verdicts, next) = self.verify_audit(&Requester::command_line(), from).await?;
        if let Some((account, seq)) = verdicts.iter().find_map(|v| Some((v.account_id, v.broken_at?))) {
            return Err(altered_log_error(account, seq));
        }
        for head in expected.iter().flat_map(|heads| heads.split_whitespace()) {
            let (account, seq, hash) = parse_head(head)?;
            if seq > 0 && self.inner.store.find_audit_hash(account, seq).await?.as_deref() != Some(hash) {
                return Err(altered_log_error(account, seq));
            }
        }
        let entries: i64 = verdicts.iter().map(|verdict| verdict.intact_count).sum();
        let heads: Vec<String> =
            verdicts.iter().map(|v| format!("{}:{}:{}", v.account_id, v.intact_count, v.hash)).collect();
        Ok(json!({ "entries": entries, "heads": heads, "next": next }))
    }
}

fn altered_log_error(account: AccountId, seq: i64) -> AdminError {
    AdminError::refused(format!(
        "the audit log of account {account} was changed: its entry {seq} is missing or altered"
    ))
}

/// Parses `ACCOUNT:SEQ:HASH`, the form of `heads` in the answer of `check_audit`.
fn parse_head(text: &str) -> Result<(AccountId, i64, &str), AdminError> {
    let wrong =
        || AdminError::refused(format!("`{text}` should be ACCOUNT:SEQ:HASH, as this command prints it"));
    let mut parts = text.splitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse::<i64>().ok()).ok_or_else(wrong);
    let (account, seq) = (AccountId(number()?), number()?);
    Ok((account, seq, parts.next().ok_or_else(wrong)?))
}

fn account_key_json(key: &AccountKey) -> Value {
    let time = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
    json!({
        "id": key.id,
        "account": key.account_id,
        "name": key.name,
        "scopes": key.scopes,
        "allow": key.allow,
        "expires_at": time(key.expires_at),
        "revoked_at": time(key.revoked_at),
        "last_used_at": time(key.last_used_at),
        "created_at": key.created_at.to_rfc3339(),
    })
}
