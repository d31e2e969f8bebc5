//! The installation's own server, under which the service's own mail is stored. It is identified by a setting, not by
//! its name, which anybody may have taken.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, ServerId, ServerMode, Timestamp};

use super::servers::{self, NewServer};
use super::set_by::SetBy;
use super::{accounts, settings};
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

const SERVER_ID_SETTING: &str = "operator_server";
/// Name of the account; followed by a number if a customer has the name.
const ACCOUNT_NAME: &str = "postroad";
const SERVER_NAME: &str = "operator";

#[boxed_futures]
impl Store {
    /// `None` before the first message of the service itself, or if the server was deleted.
    pub async fn find_service_server(&self) -> Result<Option<ServerId>> {
        self.read(move |sql| Box::pin(find(sql))).await
    }

    /// Creates the server with its own account if it does not exist.
    pub async fn find_or_create_service_server(&self) -> Result<ServerId> {
        if let Some(id) = self.find_service_server().await? {
            return Ok(id);
        }
        let now = self.clock.now();
        self.change(move |sql| Box::pin(create(sql, now))).await
    }
}

async fn find(sql: &Sql<'_>) -> Result<Option<ServerId>, StoreError> {
    let Some(id) = settings::find(sql, SERVER_ID_SETTING).await?.and_then(|id| id.parse::<i64>().ok()) else {
        return Ok(None);
    };
    let text = "SELECT s.id FROM servers s JOIN accounts a ON a.id = s.account_id
                WHERE s.id = $1 AND s.delete_at IS NULL AND a.delete_at IS NULL";
    let row = sql.query_opt(text, &[id.into()]).await?;
    row.map(|row| row.int(0).map(ServerId)).transpose()
}

async fn create(sql: &Sql<'_>, now: Timestamp) -> Result<ServerId, StoreError> {
    if !sql.is_sqlite() {
        // Concurrent calls wait for each other; the second one finds the server of the first.
        sql.query("SELECT CAST(pg_advisory_xact_lock(2, hashtext($1)) AS TEXT)", &[SERVER_ID_SETTING.into()])
            .await?;
    }
    if let Some(id) = find(sql).await? {
        return Ok(id);
    }
    let name = free_name(sql).await?;
    let account_id: AccountId = accounts::create(sql, name, now).await?.id;
    let new = NewServer { account_id, name: SERVER_NAME.to_owned(), mode: ServerMode::Live, pool_id: None };
    let id = servers::create(sql, new, SetBy::Operator, now).await?.id;
    settings::set(sql, SERVER_ID_SETTING, Some(id.0.to_string())).await?;
    Ok(id)
}

async fn free_name(sql: &Sql<'_>) -> Result<String, StoreError> {
    let mut name = ACCOUNT_NAME.to_owned();
    let mut number = 1;
    while sql.query_opt("SELECT id FROM accounts WHERE name = $1", &[name.as_str().into()]).await?.is_some() {
        number += 1;
        name = format!("{ACCOUNT_NAME} {number}");
    }
    Ok(name)
}
