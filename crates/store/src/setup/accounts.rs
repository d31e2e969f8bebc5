//! Accounts: create, find, list, change, suspend, delete, restore.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, Timestamp};
use serde::Serialize;

use super::account_ceilings::{self, AccountCeilings, AccountCeilingsChange, columns};
use super::set_by::SetBy;
use crate::error::StoreError;
use crate::name_part::like_pattern;
use crate::sql::{Row, Sql, Value};
use crate::{Result, Store};

#[derive(Debug, Clone, Serialize)]
pub struct Account {
    pub id: AccountId,
    pub name: String,
    pub suspended_reason: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Incremented by every change.
    pub version: i64,
    /// If the account is deleted: until when it can be restored.
    pub delete_at: Option<Timestamp>,
    pub ceilings: AccountCeilings,
}

/// Accounts to list; `None` in a field matches all.
#[derive(Debug, Clone, Default)]
pub struct AccountFilter {
    pub name: Option<String>,
    /// Part of the name, in any letter case.
    pub name_part: Option<String>,
    pub suspended: Option<bool>,
    /// Whether to list only deleted accounts that can still be restored; otherwise only accounts that are not deleted
    /// are listed.
    pub deleted: bool,
}

/// Result of a change that requires the version the caller has seen.
#[derive(Debug, Clone)]
pub enum UpdateResult<T> {
    Done(T),
    /// Nothing was changed: this is the current version.
    OtherVersion(i64),
}

/// A query for accounts.
macro_rules! accounts {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, suspended_reason, created_at, updated_at, version, delete_at, ",
            columns!(""),
            " FROM accounts ",
            $rest
        )
    };
}

/// SQL text of a page of accounts; `$by` is the condition that uses an index.
macro_rules! page_text {
    ($by:literal) => {
        concat!(
            accounts!($by),
            " id > $1 AND (CAST($2 AS TEXT) IS NULL OR name = $2)
              AND (CAST($3 AS BIGINT) IS NULL OR ($3 = 1) = (suspended_reason IS NOT NULL))
              AND (CAST($4 AS BIGINT) = 1) = (delete_at IS NOT NULL) AND (delete_at IS NULL OR delete_at > $6)
              AND (CAST($7 AS TEXT) IS NULL OR lower(name) LIKE lower($7) ESCAPE '\\')
              ORDER BY id LIMIT $5"
        )
    };
}

/// SQL text and parameters of a page; there is one text for each index.
pub(super) fn page_query(
    filter: AccountFilter,
    after: Option<AccountId>,
    limit: i64,
    now: Timestamp,
) -> (&'static str, Vec<Value>) {
    let text = match filter {
        AccountFilter { name: Some(_), .. } => page_text!("WHERE name = $2 AND"),
        AccountFilter { deleted: true, .. } => page_text!("WHERE delete_at IS NOT NULL AND"),
        AccountFilter { suspended: Some(true), .. } => page_text!("WHERE suspended_reason IS NOT NULL AND"),
        _ => page_text!("WHERE"),
    };
    let AccountFilter { name, name_part, suspended, deleted } = filter;
    let (after, part) = (after.map_or(0, |id| id.0), name_part.as_deref().map(like_pattern));
    let page = [suspended.into(), deleted.into(), limit.into(), now.into(), part.into()];
    (text, [after.into(), name.into()].into_iter().chain(page).collect())
}

#[boxed_futures]
impl Store {
    /// `Conflict` if another account has the name.
    pub async fn create_account(&self, name: String) -> Result<Account> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(create(sql, name, now))).await
    }

    pub async fn list_accounts(&self) -> Result<Vec<Account>> {
        self.fetch_all(accounts!("ORDER BY id"), Vec::new(), read).await
    }

    pub async fn find_account(&self, id: AccountId) -> Result<Option<Account>> {
        self.fetch_opt(accounts!("WHERE id = $1"), vec![id.0.into()], read).await
    }

    /// Accounts with ids after `after`, in the order of their ids.
    pub async fn list_accounts_page(
        &self,
        filter: AccountFilter,
        after: Option<AccountId>,
        limit: usize,
    ) -> Result<Vec<Account>> {
        let (text, params) = page_query(filter, after, limit as i64, self.clock.now());
        self.fetch_all(text, params, read).await
    }

    /// Applies all changes or none; equal values leave the version as it is. `OtherVersion` if `if_version` is given
    /// and the account has another version. `Conflict` if the operator gives a name that another account has. An
    /// account may give itself any name, so that it does not learn the names of other accounts.
    pub async fn update_account(
        &self,
        by: SetBy,
        id: AccountId,
        if_version: Option<i64>,
        name: Option<String>,
        ceilings: AccountCeilingsChange,
    ) -> Result<UpdateResult<Account>> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(update(sql, by, id, if_version, name, ceilings, now))).await
    }

    /// Marks the account as deleted, or restores it (`None`). `NotFound` if the account is already in that state, or
    /// can no longer be restored.
    pub async fn set_account_deleted(&self, id: AccountId, delete_at: Option<Timestamp>) -> Result<Account> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(set_deleted(sql, id, delete_at, now))).await
    }

    pub async fn set_account_suspended(&self, id: AccountId, reason: Option<String>) -> Result<()> {
        let now = self.clock.now();
        self.execute_one(
            "UPDATE accounts SET suspended_reason = $2,
                 version = version + CASE WHEN suspended_reason IS DISTINCT FROM $2 THEN 1 ELSE 0 END,
                 updated_at = CASE WHEN suspended_reason IS DISTINCT FROM $2 THEN $3 ELSE updated_at END
             WHERE id = $1",
            vec![id.0.into(), reason.into(), now.into()],
        )
        .await?;
        self.notify_change();
        Ok(())
    }
}

pub(crate) async fn create(sql: &Sql<'_>, name: String, now: Timestamp) -> Result<Account, StoreError> {
    check_name(sql, &name, AccountId(0)).await?;
    let row = sql
        .query_opt(
            "INSERT INTO accounts (name, created_at, updated_at) VALUES ($1, $2, $2) RETURNING id",
            &[name.into(), now.into()],
        )
        .await?;
    find(sql, AccountId(row.ok_or(StoreError::Conflict)?.int(0)?)).await
}

/// `Conflict` if an account other than `id` has the name.
async fn check_name(sql: &Sql<'_>, name: &str, id: AccountId) -> Result<(), StoreError> {
    if !sql.is_sqlite() {
        // Concurrent calls with the same name wait for each other.
        let text = "SELECT CAST(pg_advisory_xact_lock(1, hashtext($1)) AS TEXT)";
        sql.query(text, &[name.into()]).await?;
    }
    let text = "SELECT id FROM accounts WHERE name = $1 AND id <> $2 LIMIT 1";
    match sql.query_opt(text, &[name.into(), id.0.into()]).await? {
        Some(_) => Err(StoreError::Conflict),
        None => Ok(()),
    }
}

async fn find(sql: &Sql<'_>, id: AccountId) -> Result<Account, StoreError> {
    let row = sql.query_opt(accounts!("WHERE id = $1"), &[id.0.into()]).await?;
    read(&row.ok_or(StoreError::NotFound)?)
}

async fn update(
    sql: &Sql<'_>,
    by: SetBy,
    id: AccountId,
    if_version: Option<i64>,
    name: Option<String>,
    ceilings: AccountCeilingsChange,
    now: Timestamp,
) -> Result<UpdateResult<Account>, StoreError> {
    // Locks the row until the transaction ends.
    sql.execute_one("UPDATE accounts SET updated_at = updated_at WHERE id = $1", &[id.0.into()]).await?;
    let account = find(sql, id).await?;
    if if_version.is_some_and(|version| version != account.version) {
        return Ok(UpdateResult::OtherVersion(account.version));
    }
    // Only a new name is checked: the account may have chosen its present name itself, which need not be unique.
    if let Some(name) = name.as_deref().filter(|name| by == SetBy::Operator && *name != account.name) {
        check_name(sql, name, id).await?;
    }
    let ceilings = ceilings.after(&account.ceilings);
    if ceilings == account.ceilings && name.as_ref().is_none_or(|name| *name == account.name) {
        return Ok(UpdateResult::Done(account));
    }
    let mut params = vec![id.0.into(), name.into(), now.into()];
    params.extend(ceilings.values());
    sql.execute_one(
        "UPDATE accounts SET name = coalesce($2, name), version = version + 1, updated_at = $3,
             hourly_limit = $4, daily_limit = $5, monthly_limit = $6, send_rate = $7, servers_max = $8,
             domains_max = $9, webhooks_max = $10, users_max = $11, retention_bodies = $12, retention_messages = $13
         WHERE id = $1",
        &params,
    )
    .await?;
    find(sql, id).await.map(UpdateResult::Done)
}

async fn set_deleted(
    sql: &Sql<'_>,
    id: AccountId,
    delete_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<Account, StoreError> {
    sql.execute_one(
        "UPDATE accounts SET delete_at = $2, version = version + 1, updated_at = $3
         WHERE id = $1 AND CASE WHEN CAST($2 AS BIGINT) IS NULL THEN delete_at > $3 ELSE delete_at IS NULL END",
        &[id.0.into(), delete_at.into(), now.into()],
    )
    .await?;
    find(sql, id).await
}

fn read(row: &Row) -> Result<Account, StoreError> {
    Ok(Account {
        id: AccountId(row.int(0)?),
        name: row.text(1)?,
        suspended_reason: row.text_opt(2)?,
        created_at: row.time(3)?,
        updated_at: row.time(4)?,
        version: row.int(5)?,
        delete_at: row.time_opt(6)?,
        ceilings: account_ceilings::read(row, 7)?,
    })
}
