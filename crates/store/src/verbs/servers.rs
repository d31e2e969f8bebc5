//! Servers: create, list, suspend, change mode.

use postroad_model::{AccountId, ServerId, ServerMode, Timestamp};

use crate::error::StoreError;
use crate::records::{NewServer, Server};
use crate::sql::{Row, Sql};

pub(crate) async fn create(sql: &Sql<'_>, new: NewServer, now: Timestamp) -> Result<Server, StoreError> {
    let inserted = sql
        .query_opt(
            "INSERT INTO servers (account_id, name, mode, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)
             RETURNING id",
            &[new.account_id.0.into(), new.name.into(), new.mode.as_str().into(), now.into()],
        )
        .await?
        .ok_or(StoreError::Conflict)?;
    find(sql, ServerId(inserted.int(0)?)).await?.ok_or(StoreError::NotFound)
}

pub(crate) async fn find(sql: &Sql<'_>, id: ServerId) -> Result<Option<Server>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT s.id, s.account_id, a.name, s.name, s.mode, s.suspended_reason, s.created_at, s.updated_at
             FROM servers s JOIN accounts a ON a.id = s.account_id WHERE s.id = $1",
            &[id.0.into()],
        )
        .await?;
    row.as_ref().map(read).transpose()
}

pub(crate) async fn list(sql: &Sql<'_>) -> Result<Vec<Server>, StoreError> {
    let text =
        "SELECT s.id, s.account_id, a.name, s.name, s.mode, s.suspended_reason, s.created_at, s.updated_at
         FROM servers s JOIN accounts a ON a.id = s.account_id ORDER BY s.id";
    sql.query(text, &[]).await?.iter().map(read).collect()
}

/// `None` lifts a suspension.
pub(crate) async fn set_suspended(
    sql: &Sql<'_>,
    id: ServerId,
    reason: Option<String>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.change(
        "UPDATE servers SET suspended_reason = $2, updated_at = $3 WHERE id = $1",
        &[id.0.into(), reason.into(), now.into()],
    )
    .await
}

pub(crate) async fn set_mode(
    sql: &Sql<'_>,
    id: ServerId,
    mode: ServerMode,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.change(
        "UPDATE servers SET mode = $2, updated_at = $3 WHERE id = $1",
        &[id.0.into(), mode.as_str().into(), now.into()],
    )
    .await
}

fn read(row: &Row) -> Result<Server, StoreError> {
    Ok(Server {
        id: ServerId(row.int(0)?),
        account_id: AccountId(row.int(1)?),
        account_name: row.text(2)?,
        name: row.text(3)?,
        mode: row.name(4, ServerMode::parse)?,
        suspended_reason: row.text_opt(5)?,
        created_at: row.time(6)?,
        updated_at: row.time(7)?,
    })
}
