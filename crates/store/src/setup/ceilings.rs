//! Ceilings: the highest values that a server's own key may set. The operator and the account set ceilings, which also
//! changes the server's effective values.

use postroad_model::{Change, SendRate, ServerId, ServerMode, Timestamp};

use super::ceiling_values::{Ceiling, Ceilings, is_above, mode_column, value_after};
use super::server_change::ServerChange;
use super::servers::{self, CeilingsBySetter, Server, ServerRetention};
use super::set_by::SetBy;
use crate::error::StoreError;
use crate::sql::{Sql, Value};

/// Result of an update of a server.
#[derive(Debug, Clone)]
pub enum ServerUpdateResult {
    Done(Box<Server>),
    /// Nothing was changed: these ceilings, with who set them, forbid the change.
    Exceeds(Vec<(Ceiling, SetBy)>),
    /// Nothing was changed: the server has another version or pool than the caller expected. Contains its version.
    OtherVersion(i64),
}

/// Changes to a server's ceilings; `Change::Keep` and `None` leave a ceiling as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CeilingsChange {
    /// `Live` removes the ceiling. With `Development`, only the operator or account that set it can make the server
    /// live.
    pub mode: Option<ServerMode>,
    pub send_rate: Change<SendRate>,
    pub hourly_limit: Change<u32>,
    pub bodies_days: Change<u32>,
    pub messages_days: Change<u32>,
}

impl CeilingsChange {
    /// The ceilings after the change.
    fn after(&self, current: &Ceilings) -> Ceilings {
        Ceilings {
            mode: self
                .mode
                .map_or(current.mode, |mode| Some(mode).filter(|mode| *mode == ServerMode::Development)),
            send_rate: value_after(self.send_rate, current.send_rate),
            hourly_limit: value_after(self.hourly_limit, current.hourly_limit),
            bodies_days: value_after(self.bodies_days, current.bodies_days),
            messages_days: value_after(self.messages_days, current.messages_days),
        }
    }
}

/// The effective value once the ceiling changes from `old` to `new`. A value at the ceiling moves with it. A lower
/// value that the server chose itself stays. A higher value is lowered to the ceiling.
fn effective_value<T: Copy + PartialEq>(
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

/// Sets ceilings, and adjusts the server's values to them (`effective_value`). If `change`, which the caller applies
/// afterwards, would exceed the new ceilings, sets nothing and returns the exceeded ceilings.
pub(super) async fn apply_ceilings(
    sql: &Sql<'_>,
    server: &Server,
    set_by: SetBy,
    ceilings: &CeilingsChange,
    change: &ServerChange,
    now: Timestamp,
) -> Result<Vec<(Ceiling, SetBy)>, StoreError> {
    let new_ceilings = ceilings_after(server, set_by, ceilings);
    // If the operator set the server to development, the account cannot make it live.
    let makes_live = ceilings.mode == Some(ServerMode::Live) || change.mode == Some(ServerMode::Live);
    let change = ServerChange { mode: makes_live.then_some(ServerMode::Live), ..change.clone() };
    let account_ceilings = server.account_ceilings.for_server();
    // A cleared value means that the account's ceiling applies, so only the server's own ceilings can forbid clearing
    // it.
    let exceeded_ceilings = |own: &Ceilings| {
        let mut exceeded = own.min_with(&account_ceilings).exceeded_by(&change.without_clears());
        exceeded.extend(own.exceeded_by(&change.clears()));
        exceeded.sort_by_key(|ceiling| ceiling.position());
        exceeded
    };
    let exceeded = exceeded_ceilings(&new_ceilings.effective());
    let by_operator = exceeded_ceilings(&new_ceilings.operator);
    if exceeded.is_empty() && *ceilings != CeilingsChange::default() {
        write_ceilings(sql, server, set_by, ceilings, now).await?;
    }
    let origin_of = |ceiling: &Ceiling| {
        if by_operator.contains(ceiling) { SetBy::Operator } else { SetBy::Account }
    };
    Ok(exceeded.iter().map(|ceiling| (*ceiling, origin_of(ceiling))).collect())
}

/// Locks the server until the transaction ends and returns it with its stored values, before the account's ceilings
/// apply.
pub(super) async fn lock(sql: &Sql<'_>, id: ServerId) -> Result<Server, StoreError> {
    sql.execute_one("UPDATE servers SET updated_at = updated_at WHERE id = $1", &[id.0.into()]).await?;
    find(sql, id).await
}

/// The server with its stored values.
pub(super) async fn find(sql: &Sql<'_>, id: ServerId) -> Result<Server, StoreError> {
    servers::find_stored(sql, id).await?.ok_or(StoreError::NotFound)
}

/// The ceilings of a server after `set_by` has changed those that it has set.
fn ceilings_after(server: &Server, set_by: SetBy, change: &CeilingsChange) -> CeilingsBySetter {
    let mut ceilings = server.ceilings_by_setter;
    match set_by {
        SetBy::Operator => ceilings.operator = change.after(&ceilings.operator),
        SetBy::Account => ceilings.account = change.after(&ceilings.account),
    }
    ceilings
}

/// Stores the changed ceilings, and the effective values that they change.
async fn write_ceilings(
    sql: &Sql<'_>,
    server: &Server,
    set_by: SetBy,
    change: &CeilingsChange,
    now: Timestamp,
) -> Result<(), StoreError> {
    let new_ceilings = ceilings_after(server, set_by, change);
    let (old, new) = (server.ceilings_by_setter.effective(), new_ceilings.effective());
    let (text, stored) = match set_by {
        SetBy::Operator => (
            "UPDATE servers SET mode = $2, send_rate = $3, hourly_limit = $4, retention_bodies = $5,
                 retention_messages = $6, mode_ceiling = $7, send_rate_ceiling = $8, hourly_limit_ceiling = $9,
                 retention_bodies_ceiling = $10, retention_messages_ceiling = $11, version = version + 1,
                 updated_at = $12
             WHERE id = $1",
            new_ceilings.operator,
        ),
        SetBy::Account => (
            "UPDATE servers SET mode = $2, send_rate = $3, hourly_limit = $4, retention_bodies = $5,
                 retention_messages = $6, account_mode_ceiling = $7, account_send_rate_ceiling = $8,
                 account_hourly_limit_ceiling = $9, account_retention_bodies_ceiling = $10,
                 account_retention_messages_ceiling = $11, version = version + 1, updated_at = $12
             WHERE id = $1",
            new_ceilings.account,
        ),
    };
    let mode = change.mode.unwrap_or(server.mode);
    let rate = effective_value(server.send_rate, old.send_rate, new.send_rate, SendRate::is_above);
    let effective_number = |value, old, new| effective_value(value, old, new, is_above);
    let hourly_limit = effective_number(server.hourly_limit, old.hourly_limit, new.hourly_limit);
    let retention = ServerRetention {
        bodies_days: effective_number(server.retention.bodies_days, old.bodies_days, new.bodies_days),
        messages_days: effective_number(server.retention.messages_days, old.messages_days, new.messages_days),
    };
    let is_same = (mode, rate, hourly_limit, retention)
        == (server.mode, server.send_rate, server.hourly_limit, server.retention);
    if is_same && new_ceilings == server.ceilings_by_setter {
        return Ok(());
    }
    sql.execute_one(
        text,
        &[
            server.id.0.into(),
            mode.as_str().into(),
            rate.map(|rate| rate.to_string()).into(),
            number(hourly_limit),
            number(retention.bodies_days),
            number(retention.messages_days),
            stored.mode.and_then(mode_column).into(),
            stored.send_rate.map(|rate| rate.to_string()).into(),
            number(stored.hourly_limit),
            number(stored.bodies_days),
            number(stored.messages_days),
            now.into(),
        ],
    )
    .await
}

fn number(limit: Option<u32>) -> Value {
    limit.map(i64::from).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_at_its_ceiling_moves_with_it_and_a_lower_value_stays() {
        let effective_value =
            |value, old, new| effective_value(value, old, new, |value: u32, ceiling| value > ceiling);
        assert_eq!(effective_value(None, None, Some(5)), Some(5), "no limit before");
        assert_eq!(effective_value(Some(5), Some(5), Some(10)), Some(10));
        assert_eq!(effective_value(Some(5), Some(5), None), None);
        assert_eq!(effective_value(Some(3), Some(5), Some(10)), Some(3), "chosen by the server");
        assert_eq!(effective_value(Some(3), Some(5), None), Some(3));
        assert_eq!(effective_value(Some(3), None, Some(2)), Some(2));
    }
}
