//! Accounts: create, list, suspend.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, Timestamp};
use serde::Serialize;

use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

#[derive(Debug, Clone, Serialize)]
pub struct Account {
    pub id: AccountId,
    pub name: String,
    pub suspended_reason: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[boxed_futures]
impl Store {
    pub async fn create_account(&self, name: String) -> Result<Account> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(create(sql, name, now))).await
    }

    pub async fn list_accounts(&self) -> Result<Vec<Account>> {
        let text = "SELECT id, name, suspended_reason, created_at, updated_at FROM accounts ORDER BY id";
        self.fetch_all(text, Vec::new(), read).await
    }

    pub async fn set_account_suspended(&self, id: AccountId, reason: Option<String>) -> Result<()> {
        let now = self.clock.now();
        self.execute_one(
            "UPDATE accounts SET suspended_reason = $2, updated_at = $3 WHERE id = $1",
            vec![id.0.into(), reason.into(), now.into()],
        )
        .await?;
        self.note_change();
        Ok(())
    }
}

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

fn read(row: &Row) -> Result<Account, StoreError> {
    Ok(Account {
        id: AccountId(row.int(0)?),
        name: row.text(1)?,
        suspended_reason: row.text_opt(2)?,
        created_at: row.time(3)?,
        updated_at: row.time(4)?,
    })
}
