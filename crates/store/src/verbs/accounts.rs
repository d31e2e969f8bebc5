//! Accounts: create, find, list.

use postroad_model::{AccountId, Timestamp};

use crate::error::StoreError;
use crate::records::Account;
use crate::sql::{Row, Sql};

pub(crate) async fn create(sql: &Sql<'_>, name: String, now: Timestamp) -> Result<Account, StoreError> {
    let row = sql
        .query_opt(
            "INSERT INTO accounts (name, created_at, updated_at) VALUES ($1, $2, $2)
             RETURNING id, name, suspended_reason, created_at, updated_at",
            &[name.into(), now.into()],
        )
        .await?;
    read(&row.ok_or(StoreError::Conflict)?)
}

pub(crate) async fn list(sql: &Sql<'_>) -> Result<Vec<Account>, StoreError> {
    let text = "SELECT id, name, suspended_reason, created_at, updated_at FROM accounts ORDER BY id";
    sql.query(text, &[]).await?.iter().map(read).collect()
}

/// `None` lifts a suspension.
pub(crate) async fn set_suspended(
    sql: &Sql<'_>,
    id: AccountId,
    reason: Option<String>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.change(
        "UPDATE accounts SET suspended_reason = $2, updated_at = $3 WHERE id = $1",
        &[id.0.into(), reason.into(), now.into()],
    )
    .await
}

fn read(row: &Row) -> Result<Account, StoreError> {
    Ok(Account {
        id: AccountId(row.int(0)?),
        name: row.text(1)?,
        suspended_reason: row.text_opt(2)?,
        created_at: row.time(3)?,
        updated_at: row.time(4)?,
    })
}
