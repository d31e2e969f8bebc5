//! Servers: create, list, suspend. What their own keys may not exceed is in `ceilings`.

use postroad_model::{AccountId, PoolId, SendRate, ServerId, ServerMode, Timestamp};

use super::{ceilings, tracking};
use crate::error::StoreError;
use crate::records::{NewServer, Server, ServerRetention};
use crate::sql::{Row, Sql};

pub(crate) async fn create(sql: &Sql<'_>, new: NewServer, now: Timestamp) -> Result<Server, StoreError> {
    let inserted = sql
        .query_opt(
            "INSERT INTO servers (account_id, name, mode, mode_ceiling, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $5) RETURNING id",
            &[
                new.account_id.0.into(),
                new.name.into(),
                new.mode.as_str().into(),
                ceilings::of_mode(new.mode).into(),
                now.into(),
            ],
        )
        .await?
        .ok_or(StoreError::Conflict)?;
    find(sql, ServerId(inserted.int(0)?)).await?.ok_or(StoreError::NotFound)
}

pub(crate) async fn find(sql: &Sql<'_>, id: ServerId) -> Result<Option<Server>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT s.id, s.account_id, a.name, s.name, s.mode, s.suspended_reason, s.pool_id,
                    s.send_rate, s.hourly_limit, s.created_at, s.updated_at,
                    s.track_opens, s.track_clicks, s.track_excluded_hosts, s.retention_bodies, s.retention_messages,
                    s.mode_ceiling, s.send_rate_ceiling, s.hourly_limit_ceiling,
                    s.retention_bodies_ceiling, s.retention_messages_ceiling
             FROM servers s JOIN accounts a ON a.id = s.account_id WHERE s.id = $1",
            &[id.0.into()],
        )
        .await?;
    row.as_ref().map(read).transpose()
}

pub(crate) async fn list(sql: &Sql<'_>) -> Result<Vec<Server>, StoreError> {
    let text = "SELECT s.id, s.account_id, a.name, s.name, s.mode, s.suspended_reason, s.pool_id,
                    s.send_rate, s.hourly_limit, s.created_at, s.updated_at,
                    s.track_opens, s.track_clicks, s.track_excluded_hosts, s.retention_bodies, s.retention_messages,
                    s.mode_ceiling, s.send_rate_ceiling, s.hourly_limit_ceiling,
                    s.retention_bodies_ceiling, s.retention_messages_ceiling
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

/// `None` for the installation's default.
pub(crate) async fn set_pool(
    sql: &Sql<'_>,
    id: ServerId,
    pool_id: Option<PoolId>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.change(
        "UPDATE servers SET pool_id = $2, updated_at = $3 WHERE id = $1",
        &[id.0.into(), pool_id.map(|id| id.0).into(), now.into()],
    )
    .await
}

pub(crate) fn read_rate(row: &Row, at: usize) -> Result<Option<SendRate>, StoreError> {
    if row.text_opt(at)?.is_none() { Ok(None) } else { row.name(at, SendRate::parse).map(Some) }
}

fn read(row: &Row) -> Result<Server, StoreError> {
    Ok(Server {
        id: ServerId(row.int(0)?),
        account_id: AccountId(row.int(1)?),
        account_name: row.text(2)?,
        name: row.text(3)?,
        mode: row.name(4, ServerMode::parse)?,
        suspended_reason: row.text_opt(5)?,
        pool_id: row.int_opt(6)?.map(PoolId),
        send_rate: read_rate(row, 7)?,
        hourly_limit: row.int_opt(8)?.map(|limit| limit as u32),
        created_at: row.time(9)?,
        updated_at: row.time(10)?,
        tracking: tracking::read_of_server(row, 11)?,
        retention: ServerRetention {
            bodies_days: row.int_opt(14)?.map(|days| days as u32),
            messages_days: row.int_opt(15)?.map(|days| days as u32),
        },
        ceilings: ceilings::read(row, 16)?,
    })
}
