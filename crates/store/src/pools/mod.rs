//! Pools of source addresses, and the warm-up of each address.

pub(crate) mod source_days;
pub(crate) mod sources;
mod warmup;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, PoolId, Timestamp};

use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

pub use source_days::{SourceCounts, SourceDay};
pub use sources::{NewSource, Source, SourceChange, SourceList, SourceScope};
pub use warmup::WarmupPause;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub id: PoolId,
    pub name: String,
    /// The default pool. It also takes messages of pools that have no address, or have used up the daily quota of their
    /// warm-up.
    pub shared: bool,
    /// The account for which the pool is reserved; `None` for the operator's pools.
    pub account_id: Option<AccountId>,
    pub created_at: Timestamp,
    /// When the pool, or the list of its addresses, was last changed.
    pub updated_at: Timestamp,
}

#[boxed_futures]
impl Store {
    /// `Conflict` if the name is taken, or if `shared` is set and there already is a shared pool.
    pub async fn create_pool(&self, name: String, shared: bool) -> Result<Pool> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(create(sql, name, shared, None, now))).await
    }

    /// A pool for one account; never the shared one. `Conflict` if the name is taken.
    pub async fn create_pool_for(&self, name: String, account_id: AccountId) -> Result<Pool> {
        let (shared, now) = (false, self.clock.now());
        self.change(move |sql| Box::pin(create(sql, name, shared, Some(account_id), now))).await
    }

    pub async fn list_pools(&self) -> Result<Vec<Pool>> {
        self.read(move |sql| Box::pin(list(sql))).await
    }

    /// Pools that are set for servers of the account.
    pub async fn list_pools_used_by(&self, account_id: AccountId) -> Result<Vec<PoolId>> {
        self.read(move |sql| Box::pin(list_used_by(sql, account_id))).await
    }

    /// `InUse` while servers use the pool, or while it has sources.
    pub async fn delete_pool(&self, id: PoolId) -> Result<()> {
        self.change(move |sql| Box::pin(delete(sql, id))).await
    }
}

/// `Conflict` if the name is taken, or if `shared` is set and there already is a shared pool.
pub(crate) async fn create(
    sql: &Sql<'_>,
    name: String,
    shared: bool,
    account_id: Option<AccountId>,
    now: Timestamp,
) -> Result<Pool, StoreError> {
    let row = sql
        .query_opt(
            "INSERT INTO pools (name, shared, created_at, updated_at, account_id) VALUES ($1, $2, $3, $3, $4)
             RETURNING id, name, shared, account_id, created_at, updated_at",
            &[name.into(), shared.into(), now.into(), account_id.map(|id| id.0).into()],
        )
        .await?;
    read_pool(&row.ok_or(StoreError::Conflict)?)
}

pub(crate) async fn list(sql: &Sql<'_>) -> Result<Vec<Pool>, StoreError> {
    let text = "SELECT id, name, shared, account_id, created_at, updated_at FROM pools ORDER BY id";
    let rows = sql.query(text, &[]).await?;
    rows.iter().map(read_pool).collect()
}

async fn list_used_by(sql: &Sql<'_>, account_id: AccountId) -> Result<Vec<PoolId>, StoreError> {
    let text = "SELECT p.id FROM pools p
                WHERE EXISTS (SELECT 1 FROM servers s WHERE s.account_id = $1 AND s.pool_id = p.id) ORDER BY p.id";
    let rows = sql.query(text, &[account_id.0.into()]).await?;
    rows.iter().map(|row| row.int(0).map(PoolId)).collect()
}

/// `InUse` while servers use the pool, or while it has sources.
pub(crate) async fn delete(sql: &Sql<'_>, id: PoolId) -> Result<(), StoreError> {
    let deleted = sql
        .execute(
            "DELETE FROM pools WHERE id = $1
             AND NOT EXISTS (SELECT 1 FROM servers WHERE servers.pool_id = pools.id)
             AND NOT EXISTS (SELECT 1 FROM sources WHERE sources.pool_id = pools.id)",
            &[id.0.into()],
        )
        .await?;
    let exists = sql.query_opt("SELECT id FROM pools WHERE id = $1", &[id.0.into()]).await?.is_some();
    match (deleted, exists) {
        (0, true) => Err(StoreError::InUse),
        (0, false) => Err(StoreError::NotFound),
        _ => Ok(()),
    }
}

/// Records that the pool was changed.
async fn touch(sql: &Sql<'_>, id: PoolId, now: Timestamp) -> Result<(), StoreError> {
    sql.execute("UPDATE pools SET updated_at = $2 WHERE id = $1", &[id.0.into(), now.into()]).await?;
    Ok(())
}

fn read_pool(row: &Row) -> Result<Pool, StoreError> {
    Ok(Pool {
        id: PoolId(row.int(0)?),
        name: row.text(1)?,
        shared: row.flag(2)?,
        account_id: row.int_opt(3)?.map(AccountId),
        created_at: row.time(4)?,
        updated_at: row.time(5)?,
    })
}
