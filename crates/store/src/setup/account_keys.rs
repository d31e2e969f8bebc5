//! API keys of accounts and of the operator: create, find, list, revoke, record their use.

use ipnet::IpNet;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, AccountKeyId, AccountScope, Timestamp};

use super::credentials::{KeyHash, read_hash};
use crate::error::StoreError;
use crate::sql::{Row, Sql, to_json};
use crate::{Result, Store};

#[derive(Debug, Clone)]
pub struct NewAccountKey {
    /// `None` for a key of the operator.
    pub account_id: Option<AccountId>,
    pub name: String,
    pub key_hash: KeyHash,
    pub scopes: Vec<AccountScope>,
    /// Networks the key may be used from; empty for all.
    pub allow: Vec<IpNet>,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct AccountKey {
    pub id: AccountKeyId,
    /// `None` for a key of the operator.
    pub account_id: Option<AccountId>,
    pub name: String,
    pub key_hash: KeyHash,
    pub scopes: Vec<AccountScope>,
    pub allow: Vec<IpNet>,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Why the account is suspended or deleted, if it is.
    pub suspended_reason: Option<String>,
}

/// Owner of the keys to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountKeyOwner {
    Operator,
    Account(AccountId),
}

impl AccountKeyOwner {
    fn column(self) -> i64 {
        match self {
            Self::Operator => 0,
            Self::Account(id) => id.0,
        }
    }
}

/// Keys to list; `None` in a field matches all.
#[derive(Debug, Clone, Default)]
pub struct AccountKeyFilter {
    pub name: Option<String>,
    pub revoked: Option<bool>,
}

#[boxed_futures]
impl Store {
    /// `NotFound` if the account does not exist.
    pub async fn create_account_key(&self, new: NewAccountKey) -> Result<AccountKey> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(create(sql, new, now))).await
    }

    pub async fn find_account_key(&self, key: KeyHash) -> Result<Option<AccountKey>> {
        self.read(move |sql| Box::pin(find_by_hash(sql, key))).await
    }

    pub async fn find_account_key_by_id(&self, id: AccountKeyId) -> Result<Option<AccountKey>> {
        self.read(move |sql| Box::pin(find_by_id(sql, id))).await
    }

    /// Keys after `after`, in the order of their ids.
    pub async fn list_account_keys(
        &self,
        owner: AccountKeyOwner,
        filter: AccountKeyFilter,
        after: Option<AccountKeyId>,
        limit: usize,
    ) -> Result<Vec<AccountKey>> {
        self.read(move |sql| Box::pin(list(sql, owner, filter, after, limit as i64))).await
    }

    /// `NotFound` if the owner has no such key. Revoking twice keeps the first time.
    pub async fn revoke_account_key(&self, owner: AccountKeyOwner, id: AccountKeyId) -> Result<AccountKey> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(revoke(sql, owner, id, now))).await
    }

    /// Stores when keys were last used; never replaces a time by an earlier one.
    pub async fn touch_account_keys(&self, used: Vec<(AccountKeyId, Timestamp)>) -> Result<()> {
        self.write(move |sql| Box::pin(touch(sql, used))).await
    }
}

async fn create(sql: &Sql<'_>, new: NewAccountKey, now: Timestamp) -> Result<AccountKey, StoreError> {
    let row = sql
        .query_opt(
            "INSERT INTO account_keys (account_id, name, key_hash, scopes, allow, expires_at, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $7) RETURNING id",
            &[
                new.account_id.map(|id| id.0).into(),
                new.name.into(),
                new.key_hash.0.to_vec().into(),
                to_json(&new.scopes).into(),
                to_json(&new.allow).into(),
                new.expires_at.into(),
                now.into(),
            ],
        )
        .await?;
    row.ok_or(StoreError::Conflict)?;
    find_by_hash(sql, new.key_hash).await?.ok_or(StoreError::NotFound)
}

async fn find_by_hash(sql: &Sql<'_>, key: KeyHash) -> Result<Option<AccountKey>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT k.id, k.account_id, k.name, k.key_hash, k.scopes, k.allow, k.expires_at, k.revoked_at,
                    k.last_used_at, k.created_at, k.updated_at,
                    coalesce(a.suspended_reason, CASE WHEN a.delete_at IS NOT NULL THEN 'deleted' END)
             FROM account_keys k LEFT JOIN accounts a ON a.id = k.account_id WHERE k.key_hash = $1",
            &[key.0.to_vec().into()],
        )
        .await?;
    row.map(|mut row| read(&mut row)).transpose()
}

async fn find_by_id(sql: &Sql<'_>, id: AccountKeyId) -> Result<Option<AccountKey>, StoreError> {
    let row = sql.query_opt("SELECT key_hash FROM account_keys WHERE id = $1", &[id.0.into()]).await?;
    match row {
        Some(mut row) => find_by_hash(sql, read_hash(&mut row, 0)?).await,
        None => Ok(None),
    }
}

async fn list(
    sql: &Sql<'_>,
    owner: AccountKeyOwner,
    filter: AccountKeyFilter,
    after: Option<AccountKeyId>,
    limit: i64,
) -> Result<Vec<AccountKey>, StoreError> {
    // One SQL text for each kind of owner, so that both use the index.
    let text = match owner {
        AccountKeyOwner::Operator => {
            "SELECT k.id, k.account_id, k.name, k.key_hash, k.scopes, k.allow, k.expires_at, k.revoked_at,
                    k.last_used_at, k.created_at, k.updated_at, CAST(NULL AS TEXT)
             FROM account_keys k
             WHERE k.account_id IS NULL AND CAST($1 AS BIGINT) = 0 AND k.id > $2
               AND (CAST($4 AS TEXT) IS NULL OR k.name = $4)
               AND (CAST($5 AS BIGINT) IS NULL OR ($5 = 1) = (k.revoked_at IS NOT NULL))
             ORDER BY k.id LIMIT $3"
        }
        AccountKeyOwner::Account(_) => {
            "SELECT k.id, k.account_id, k.name, k.key_hash, k.scopes, k.allow, k.expires_at, k.revoked_at,
                    k.last_used_at, k.created_at, k.updated_at,
                    coalesce(a.suspended_reason, CASE WHEN a.delete_at IS NOT NULL THEN 'deleted' END)
             FROM account_keys k JOIN accounts a ON a.id = k.account_id
             WHERE k.account_id = $1 AND k.id > $2
               AND (CAST($4 AS TEXT) IS NULL OR k.name = $4)
               AND (CAST($5 AS BIGINT) IS NULL OR ($5 = 1) = (k.revoked_at IS NOT NULL))
             ORDER BY k.id LIMIT $3"
        }
    };
    let after = after.map_or(0, |id| id.0);
    let params =
        [owner.column().into(), after.into(), limit.into(), filter.name.into(), filter.revoked.into()];
    let rows = sql.query(text, &params).await?;
    rows.into_iter().map(|mut row| read(&mut row)).collect()
}

async fn revoke(
    sql: &Sql<'_>,
    owner: AccountKeyOwner,
    id: AccountKeyId,
    now: Timestamp,
) -> Result<AccountKey, StoreError> {
    let mut row = sql
        .query_opt(
            "UPDATE account_keys SET revoked_at = coalesce(revoked_at, $3), updated_at = $3
             WHERE id = $1 AND coalesce(account_id, 0) = $2 RETURNING key_hash",
            &[id.0.into(), owner.column().into(), now.into()],
        )
        .await?
        .ok_or(StoreError::NotFound)?;
    let key_hash = read_hash(&mut row, 0)?;
    find_by_hash(sql, key_hash).await?.ok_or(StoreError::NotFound)
}

async fn touch(sql: &Sql<'_>, mut used: Vec<(AccountKeyId, Timestamp)>) -> Result<(), StoreError> {
    // In a fixed order, to avoid deadlocks between nodes.
    used.sort_unstable();
    for (id, at) in used {
        sql.execute(
            "UPDATE account_keys SET last_used_at = $2
             WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)",
            &[id.0.into(), at.into()],
        )
        .await?;
    }
    Ok(())
}

fn read(row: &mut Row) -> Result<AccountKey, StoreError> {
    Ok(AccountKey {
        id: AccountKeyId(row.int(0)?),
        account_id: row.int_opt(1)?.map(AccountId),
        name: row.text(2)?,
        key_hash: read_hash(row, 3)?,
        scopes: row.json(4)?,
        allow: row.json(5)?,
        expires_at: row.time_opt(6)?,
        revoked_at: row.time_opt(7)?,
        last_used_at: row.time_opt(8)?,
        created_at: row.time(9)?,
        updated_at: row.time(10)?,
        suspended_reason: row.text_opt(11)?,
    })
}
