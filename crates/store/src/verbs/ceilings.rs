//! Ceilings of a server: the operator sets them, and the value in force follows.
//!
//! Each verb locks the server's row first, so that a ceiling and a change by the server's own key cannot cross.

use postroad_model::{SendRate, ServerId, ServerMode, Timestamp};

use super::servers;
use crate::error::StoreError;
use crate::records::{Ceilings, Server, follow};
use crate::sql::{Row, Sql};

/// Reads the five columns from `at` on.
pub(super) fn read(row: &Row, at: usize) -> Result<Ceilings, StoreError> {
    let number = |at| Ok::<_, StoreError>(row.int_opt(at)?.map(|number| number as u32));
    let mode = if row.text_opt(at)?.is_none() { None } else { Some(row.name(at, ServerMode::parse)?) };
    Ok(Ceilings {
        mode,
        send_rate: servers::read_rate(row, at + 1)?,
        hourly_limit: number(at + 2)?,
        bodies_days: number(at + 3)?,
        messages_days: number(at + 4)?,
    })
}

/// A live server may be either; one that the operator made a development server stays one.
pub(super) fn of_mode(mode: ServerMode) -> Option<&'static str> {
    (mode == ServerMode::Development).then(|| mode.as_str())
}

/// The server, which nobody else changes until the transaction ends.
pub(super) async fn lock(sql: &Sql<'_>, id: ServerId) -> Result<Server, StoreError> {
    sql.change("UPDATE servers SET updated_at = updated_at WHERE id = $1", &[id.0.into()]).await?;
    servers::find(sql, id).await?.ok_or(StoreError::NotFound)
}

pub(crate) async fn set_mode(
    sql: &Sql<'_>,
    id: ServerId,
    mode: ServerMode,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.change(
        "UPDATE servers SET mode = $2, mode_ceiling = $3, updated_at = $4 WHERE id = $1",
        &[id.0.into(), mode.as_str().into(), of_mode(mode).into(), now.into()],
    )
    .await
}

pub(crate) async fn set_send_rate(
    sql: &Sql<'_>,
    id: ServerId,
    ceiling: Option<SendRate>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let server = lock(sql, id).await?;
    let rate = follow(server.send_rate, server.ceilings.send_rate, ceiling, SendRate::is_above);
    let text = |rate: Option<SendRate>| rate.map(|rate| rate.to_string());
    sql.change(
        "UPDATE servers SET send_rate = $2, send_rate_ceiling = $3, updated_at = $4 WHERE id = $1",
        &[id.0.into(), text(rate).into(), text(ceiling).into(), now.into()],
    )
    .await
}

pub(crate) async fn set_hourly_limit(
    sql: &Sql<'_>,
    id: ServerId,
    ceiling: Option<u32>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let server = lock(sql, id).await?;
    let limit = follow(server.hourly_limit, server.ceilings.hourly_limit, ceiling, |a, b| a > b);
    sql.change(
        "UPDATE servers SET hourly_limit = $2, hourly_limit_ceiling = $3, updated_at = $4 WHERE id = $1",
        &[id.0.into(), limit.map(i64::from).into(), ceiling.map(i64::from).into(), now.into()],
    )
    .await
}

/// Days for the text of messages, and for messages with everything about them.
pub(crate) async fn set_retention(
    sql: &Sql<'_>,
    id: ServerId,
    bodies: Option<u32>,
    messages: Option<u32>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Server { retention, ceilings, .. } = lock(sql, id).await?;
    let in_force = |value, old, new| follow(value, old, new, |a: u32, b| a > b).map(i64::from);
    sql.change(
        "UPDATE servers SET retention_bodies = $2, retention_bodies_ceiling = $3,
             retention_messages = $4, retention_messages_ceiling = $5, updated_at = $6
         WHERE id = $1",
        &[
            id.0.into(),
            in_force(retention.bodies_days, ceilings.bodies_days, bodies).into(),
            bodies.map(i64::from).into(),
            in_force(retention.messages_days, ceilings.messages_days, messages).into(),
            messages.map(i64::from).into(),
            now.into(),
        ],
    )
    .await
}
