//! Ceilings: the highest values that a server's own key may set. The operator sets them, and the value in force follows.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{Change, SendRate, ServerId, ServerMode, Timestamp};

use super::ceiling_values::{Ceiling, Ceilings, of_mode};
use super::server_change::ServerChange;
use super::servers;
use super::servers::Server;
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

/// Result of an update by a server's own key.
#[derive(Debug, Clone)]
pub enum ServerUpdate {
    Done(Box<Server>),
    /// Nothing was changed: these ceilings forbid it.
    Exceeds(Vec<Ceiling>),
    /// Nothing was changed: the server has this version.
    OtherVersion(i64),
}

/// Changes of ceilings; `Keep` keeps one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CeilingsChange {
    /// Of a server that is made `development`, only the operator can make it live.
    pub mode: Option<ServerMode>,
    pub send_rate: Change<SendRate>,
    pub hourly_limit: Change<u32>,
    pub bodies_days: Change<u32>,
    pub messages_days: Change<u32>,
}

impl CeilingsChange {
    /// The ceilings after the change.
    fn after(&self, now: &Ceilings) -> Ceilings {
        Ceilings {
            mode: self
                .mode
                .map_or(now.mode, |mode| Some(mode).filter(|mode| *mode == ServerMode::Development)),
            send_rate: changed(self.send_rate, now.send_rate),
            hourly_limit: changed(self.hourly_limit, now.hourly_limit),
            bodies_days: changed(self.bodies_days, now.bodies_days),
            messages_days: changed(self.messages_days, now.messages_days),
        }
    }
}

fn changed<T>(change: Change<T>, now: Option<T>) -> Option<T> {
    match change {
        Change::Keep => now,
        Change::Clear => None,
        Change::Set(value) => Some(value),
    }
}

/// The value in force once the ceiling changes from `old` to `new`: a value at the ceiling moves with it, a lower one
/// that the server chose itself stays, a higher one is cut.
pub(crate) fn follow<T: Copy + PartialEq>(
    value: Option<T>,
    old: Option<T>,
    new: Option<T>,
    is_above: impl Fn(T, T) -> bool,
) -> Option<T> {
    match (value, new) {
        _ if value == old => new,
        (Some(value), Some(new)) if is_above(value, new) => Some(new),
        (None, new) => new,
        (value, _) => value,
    }
}

#[boxed_futures]
impl Store {
    /// The operator's word: a development server cannot be made live by its own key.
    pub async fn set_server_mode(&self, id: ServerId, mode: ServerMode) -> Result<()> {
        let now = self.clock.now();
        self.execute_one(
            "UPDATE servers SET mode = $2, mode_ceiling = $3, version = version + 1, updated_at = $4 WHERE id = $1",
            vec![id.0.into(), mode.as_str().into(), of_mode(mode).into(), now.into()],
        )
        .await?;
        self.note_change();
        Ok(())
    }

    /// The ceiling, and the rate in force if it was at the old ceiling or is above the new one.
    pub async fn set_server_send_rate(&self, id: ServerId, ceiling: Option<SendRate>) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(set_send_rate(sql, id, ceiling, now))).await
    }

    /// Likewise.
    pub async fn set_server_hourly_limit(&self, id: ServerId, ceiling: Option<u32>) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(set_hourly_limit(sql, id, ceiling, now))).await
    }

    /// Likewise, for the text of messages and for messages with everything about them.
    pub async fn set_server_retention(
        &self,
        id: ServerId,
        bodies_days: Option<u32>,
        messages_days: Option<u32>,
    ) -> Result<()> {
        let now = self.clock.now();
        let (bodies, messages) = (bodies_days, messages_days);
        self.change(move |sql| Box::pin(set_retention(sql, id, bodies, messages, now))).await
    }
}

/// Sets ceilings; values in force follow them. Changes nothing if `change` would exceed the new ones.
pub(crate) async fn set_all(
    sql: &Sql<'_>,
    server: &Server,
    ceilings: &CeilingsChange,
    change: &ServerChange,
    now: Timestamp,
) -> Result<Vec<Ceiling>, StoreError> {
    let (old, new) = (&server.ceilings, ceilings.after(&server.ceilings));
    let exceeded = new.exceeded_by(change);
    if !exceeded.is_empty() {
        return Ok(exceeded);
    }
    let id = server.id;
    if let Some(mode) = ceilings.mode {
        let text = "UPDATE servers SET mode = $2, mode_ceiling = $3 WHERE id = $1";
        sql.change(text, &[id.0.into(), mode.as_str().into(), of_mode(mode).into()]).await?;
    }
    if new.send_rate != old.send_rate {
        set_send_rate(sql, id, new.send_rate, now).await?;
    }
    if new.hourly_limit != old.hourly_limit {
        set_hourly_limit(sql, id, new.hourly_limit, now).await?;
    }
    if (new.bodies_days, new.messages_days) != (old.bodies_days, old.messages_days) {
        set_retention(sql, id, new.bodies_days, new.messages_days, now).await?;
    }
    Ok(Vec::new())
}

/// The server, which nobody else changes until the transaction ends.
pub(crate) async fn lock(sql: &Sql<'_>, id: ServerId) -> Result<Server, StoreError> {
    sql.change("UPDATE servers SET updated_at = updated_at WHERE id = $1", &[id.0.into()]).await?;
    servers::find(sql, id).await?.ok_or(StoreError::NotFound)
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
        "UPDATE servers SET send_rate = $2, send_rate_ceiling = $3, version = version + 1, updated_at = $4 WHERE id = $1",
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
        "UPDATE servers SET hourly_limit = $2, hourly_limit_ceiling = $3, version = version + 1, updated_at = $4 WHERE id = $1",
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
             retention_messages = $4, retention_messages_ceiling = $5, version = version + 1, updated_at = $6
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_at_its_ceiling_moves_with_it_and_a_chosen_one_stays() {
        let follow = |value, old, new| follow(value, old, new, |value: u32, ceiling| value > ceiling);
        assert_eq!(follow(None, None, Some(5)), Some(5), "no limit before");
        assert_eq!(follow(Some(5), Some(5), Some(10)), Some(10));
        assert_eq!(follow(Some(5), Some(5), None), None);
        assert_eq!(follow(Some(3), Some(5), Some(10)), Some(3), "chosen by the server");
        assert_eq!(follow(Some(3), Some(5), None), Some(3));
        assert_eq!(follow(Some(3), None, Some(2)), Some(2));
    }
}
