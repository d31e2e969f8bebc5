//! Changes several settings of a server at once, all or none.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, ServerMode, Timestamp};

use super::ceiling_values::value_after;
use super::ceilings::{CeilingsChange, ServerUpdateResult};
use super::server_change::ServerChange;
use super::servers::Server;
use super::set_by::SetBy;
use super::{ceilings, servers};
use crate::error::StoreError;
use crate::sql::{Sql, to_json};
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Applies all changes or none: none if one exceeds a ceiling, or if the server's version is not `if_version`,
    /// or its pool is not the `from` of `change.pool`. `Conflict` if another server of the account has the name.
    pub async fn update_server(
        &self,
        id: ServerId,
        if_version: Option<i64>,
        change: ServerChange,
    ) -> Result<ServerUpdateResult> {
        let ceilings = (SetBy::Account, CeilingsChange::default());
        self.update_server_with_ceilings(id, if_version, ceilings, change).await
    }

    /// `update_server` by the account or the operator, who can set new ceilings at the same time.
    pub async fn update_server_with_ceilings(
        &self,
        id: ServerId,
        if_version: Option<i64>,
        ceilings: (SetBy, CeilingsChange),
        change: ServerChange,
    ) -> Result<ServerUpdateResult> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(update(sql, id, if_version, ceilings, change, now))).await
    }
}

/// Changes settings and ceilings; equal values leave the version as it is. Changes nothing if a ceiling forbids any
/// part. `Conflict` if another server of the account has the name.
pub(crate) async fn update(
    sql: &Sql<'_>,
    id: ServerId,
    if_version: Option<i64>,
    (set_by, new_ceilings): (SetBy, CeilingsChange),
    change: ServerChange,
    now: Timestamp,
) -> Result<ServerUpdateResult, StoreError> {
    let server = ceilings::lock(sql, id).await?;
    if if_version.is_some_and(|version| version != server.version) {
        return Ok(ServerUpdateResult::OtherVersion(server.version));
    }
    if change.pool.is_some_and(|pool| pool.from != server.pool_id) {
        return Ok(ServerUpdateResult::OtherVersion(server.version));
    }
    let exceeded = ceilings::apply_ceilings(sql, &server, set_by, &new_ceilings, &change, now).await?;
    if !exceeded.is_empty() {
        return Ok(ServerUpdateResult::Exceeds(exceeded));
    }
    let has_new_ceilings = new_ceilings != CeilingsChange::default();
    let server = if has_new_ceilings { ceilings::find(sql, id).await? } else { server };
    if change.differs_from(&server) {
        apply(sql, id, change, now).await?;
    }
    let server = servers::find(sql, id).await?.ok_or(StoreError::NotFound)?;
    Ok(ServerUpdateResult::Done(Box::new(server)))
}

async fn apply(sql: &Sql<'_>, id: ServerId, change: ServerChange, now: Timestamp) -> Result<(), StoreError> {
    let (keeps_rate, keeps_limit) = (change.send_rate.is_keep(), change.hourly_limit.is_keep());
    sql.execute_one(
        "UPDATE servers SET name = coalesce($2, name), mode = coalesce($3, mode),
             send_rate = CASE CAST($4 AS BIGINT) WHEN 1 THEN send_rate ELSE $5 END,
             hourly_limit = CASE CAST($6 AS BIGINT) WHEN 1 THEN hourly_limit ELSE $7 END,
             track_opens = coalesce($8, track_opens), track_clicks = coalesce($9, track_clicks),
             track_excluded_hosts = coalesce($10, track_excluded_hosts),
             retention_bodies = CASE CAST($11 AS BIGINT) WHEN 1 THEN retention_bodies ELSE $12 END,
             retention_messages = CASE CAST($13 AS BIGINT) WHEN 1 THEN retention_messages ELSE $14 END,
             pool_id = CASE CAST($15 AS BIGINT) WHEN 1 THEN pool_id ELSE $16 END, version = version + 1, updated_at = $17
         WHERE id = $1",
        &[
            id.0.into(),
            change.name.into(),
            change.mode.map(ServerMode::as_str).into(),
            keeps_rate.into(),
            change.send_rate.into_value().map(|rate| rate.to_string()).into(),
            keeps_limit.into(),
            change.hourly_limit.into_value().map(i64::from).into(),
            change.track_opens.into(),
            change.track_clicks.into(),
            change.track_excluded_hosts.as_ref().map(to_json).into(),
            change.bodies_days.is_keep().into(),
            change.bodies_days.into_value().map(i64::from).into(),
            change.messages_days.is_keep().into(),
            change.messages_days.into_value().map(i64::from).into(),
            change.pool.is_none().into(),
            change.pool.and_then(|pool| pool.to).map(|id| id.0).into(),
            now.into(),
        ],
    )
    .await
}

impl ServerChange {
    /// Whether the change gives any setting another value.
    fn differs_from(&self, server: &Server) -> bool {
        let Server { tracking, retention, .. } = server;
        self.name.as_ref().is_some_and(|name| *name != server.name)
            || self.mode.is_some_and(|mode| mode != server.mode)
            || value_after(self.send_rate, server.send_rate) != server.send_rate
            || value_after(self.hourly_limit, server.hourly_limit) != server.hourly_limit
            || self.track_opens.is_some_and(|opens| opens != tracking.opens)
            || self.track_clicks.is_some_and(|clicks| clicks != tracking.clicks)
            || self.track_excluded_hosts.as_ref().is_some_and(|hosts| *hosts != tracking.excluded_hosts)
            || value_after(self.bodies_days, retention.bodies_days) != retention.bodies_days
            || value_after(self.messages_days, retention.messages_days) != retention.messages_days
            || self.pool.is_some_and(|pool| pool.to != server.pool_id)
    }
}
