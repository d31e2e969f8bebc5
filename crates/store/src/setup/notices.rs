//! Events about limits and ceilings of an account, for all its servers. The transaction that crosses a threshold writes
//! one row, the notice. Its event is then appended for the servers in small steps, so that an account with many servers
//! delays nobody's mail.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, EventKind, IdGenerator, ServerId, Timestamp};
use serde_json::{Map, Value, json};

use crate::error::StoreError;
use crate::events::{NewEvent, append};
use crate::sql::Sql;
use crate::{Result, Store};

/// Maximum number of servers that get the event in one transaction.
const SERVERS_PER_TRANSACTION: i64 = 50;

#[boxed_futures]
impl Store {
    /// Appends the event of the oldest notice for some servers. `false` if there is no notice, or if other nodes work
    /// on all notices.
    pub async fn write_account_notices(&self) -> Result<bool> {
        // Called every second, usually without effect: the read avoids a useless write.
        if !self.read(|sql| Box::pin(has_notice(sql))).await? {
            return Ok(false);
        }
        let notified =
            self.write_with_ids(|sql, ids| Box::pin(async move { write_some(sql, &ids).await })).await?;
        let Some(servers) = notified else { return Ok(false) };
        self.notifier.notify(servers);
        Ok(true)
    }
}

pub(crate) async fn add(
    sql: &Sql<'_>,
    account_id: AccountId,
    event: &NewEvent,
    at: Timestamp,
) -> Result<(), StoreError> {
    let params = [account_id.0.into(), event.kind.as_str().into(), event.data.as_str().into(), at.into()];
    sql.execute("INSERT INTO account_notices (account_id, kind, data, at) VALUES ($1, $2, $3, $4)", &params)
        .await?;
    Ok(())
}

async fn has_notice(sql: &Sql<'_>) -> Result<bool, StoreError> {
    Ok(sql.query_opt("SELECT id FROM account_notices ORDER BY id LIMIT 1", &[]).await?.is_some())
}

/// Appends the event of a notice for some servers and returns these servers. `None` if there is no notice, or if other
/// nodes work on all notices.
async fn write_some(sql: &Sql<'_>, ids: &IdGenerator) -> Result<Option<Vec<ServerId>>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT id, account_id, kind, data, at, after_server FROM account_notices ORDER BY id LIMIT 1"
    } else {
        "SELECT id, account_id, kind, data, at, after_server FROM account_notices ORDER BY id LIMIT 1
         FOR UPDATE SKIP LOCKED"
    };
    let Some(row) = sql.query_opt(text, &[]).await? else { return Ok(None) };
    let (id, account, at) = (row.int(0)?, row.int(1)?, row.time(4)?);
    let (kind, data) = (row.parsed(2, EventKind::parse)?, row.text(3)?);
    let servers = sql
        .query(
            "SELECT s.id, s.name, a.name FROM servers s JOIN accounts a ON a.id = s.account_id
             WHERE s.account_id = $1 AND s.id > $2 AND s.delete_at IS NULL ORDER BY s.id LIMIT $3",
            &[account.into(), row.int(5)?.into(), SERVERS_PER_TRANSACTION.into()],
        )
        .await?;
    let mut notified = Vec::with_capacity(servers.len());
    for server in &servers {
        let server_id = ServerId(server.int(0)?);
        let mut fields = Map::from_iter([
            ("server".to_owned(), json!({ "id": server_id.0, "name": server.text(1)? })),
            ("account".to_owned(), json!({ "id": account, "name": server.text(2)? })),
        ]);
        if let Ok(Value::Object(own)) = serde_json::from_str(&data) {
            fields.extend(own);
        }
        let event = NewEvent { kind, data: Value::Object(fields).to_string() };
        append::append_server_event(sql, ids, server_id, &event, at).await?;
        notified.push(server_id);
    }
    match notified.last() {
        Some(last) if notified.len() as i64 == SERVERS_PER_TRANSACTION => {
            let text = "UPDATE account_notices SET after_server = $2 WHERE id = $1";
            sql.execute(text, &[id.into(), last.0.into()]).await?;
        }
        _ => {
            sql.execute("DELETE FROM account_notices WHERE id = $1", &[id.into()]).await?;
        }
    }
    Ok(Some(notified))
}
