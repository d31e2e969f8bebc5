//! Gates: suspensions and slow-downs of one scope of delivery, set by people or by adaptive pacing.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{GateAction, GateScope, Timestamp};

use crate::SetBy;
use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

const SUSPEND: &str = "suspend";
const SLOW: &str = "slow";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGate {
    pub scope: GateScope,
    pub action: GateAction,
    pub reason: String,
    /// Set by adaptive pacing, not by a person.
    pub automatic: bool,
    pub ends_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    pub scope: GateScope,
    pub action: GateAction,
    pub reason: String,
    pub automatic: bool,
    /// Who set a gate that is not automatic.
    pub set_by: SetBy,
    pub created_at: Timestamp,
    pub ends_at: Option<Timestamp>,
}

#[boxed_futures]
impl Store {
    /// Sets a gate as the operator. Replaces the gate on the same scope that was set in the same way: by a person, or
    /// by adaptive pacing.
    pub async fn set_gate(&self, new: NewGate) -> Result<()> {
        self.set_gate_by(SetBy::Operator, new).await.map(drop)
    }

    /// Sets a gate as `by`. `false` if nothing was changed: an account cannot replace a gate of the operator.
    pub async fn set_gate_by(&self, by: SetBy, new: NewGate) -> Result<bool> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(set(sql, by, new, now))).await
    }

    /// Removes the gates of a scope, a person's and an automatic one. Returns whether there was any.
    pub async fn remove_gate(&self, scope: GateScope) -> Result<bool> {
        self.change(move |sql| Box::pin(remove(sql, scope))).await
    }

    /// Removes the account's own gate on a scope. `false` if a gate of somebody else is left.
    pub async fn remove_gate_of_account(&self, scope: GateScope) -> Result<bool> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(remove_of_account(sql, scope, now))).await
    }

    /// Lists gates that have not ended.
    pub async fn list_gates(&self) -> Result<Vec<Gate>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(list(sql, now))).await
    }

    /// Removes gates that have ended; returns how many.
    pub async fn purge_gates(&self) -> Result<u64> {
        let now = self.clock.now();
        self.execute("DELETE FROM gates WHERE ends_at <= $1", vec![now.into()]).await
    }
}

async fn set(sql: &Sql<'_>, by: SetBy, new: NewGate, now: Timestamp) -> Result<bool, StoreError> {
    let (action, per_minute) = match new.action {
        GateAction::Suspend => (SUSPEND, None),
        GateAction::Slow { per_minute } => (SLOW, Some(i64::from(per_minute))),
    };
    let written = sql
        .execute(
            "INSERT INTO gates (scope_kind, scope_key, automatic, action, per_minute, reason, created_at, ends_at, set_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (scope_kind, scope_key, automatic) DO UPDATE
             SET action = excluded.action, per_minute = excluded.per_minute, reason = excluded.reason,
                 created_at = excluded.created_at, ends_at = excluded.ends_at, set_by = excluded.set_by
             WHERE excluded.set_by IS NULL OR gates.set_by IS NOT NULL OR gates.ends_at <= $7",
            &[
            new.scope.kind().into(),
            new.scope.key().into(),
            new.automatic.into(),
            action.into(),
            per_minute.into(),
            new.reason.into(),
            now.into(),
            new.ends_at.into(),
            by.stored().into(),
        ],
    )
    .await?;
    Ok(written > 0)
}

/// Removes the account's own gate on a scope. `false` if a gate of somebody else is left.
async fn remove_of_account(sql: &Sql<'_>, scope: GateScope, now: Timestamp) -> Result<bool, StoreError> {
    let key = [scope.kind().into(), scope.key().into()];
    let own = "DELETE FROM gates WHERE scope_kind = $1 AND scope_key = $2 AND set_by IS NOT NULL";
    sql.execute(own, &key).await?;
    let [kind, key] = key;
    let left = "SELECT scope_key FROM gates
                WHERE scope_kind = $1 AND scope_key = $2 AND (ends_at IS NULL OR ends_at > $3) LIMIT 1";
    Ok(sql.query_opt(left, &[kind, key, now.into()]).await?.is_none())
}

/// Removes the gates of a scope, a person's and an automatic one. Returns whether there was any.
pub(crate) async fn remove(sql: &Sql<'_>, scope: GateScope) -> Result<bool, StoreError> {
    let removed = sql
        .execute(
            "DELETE FROM gates WHERE scope_kind = $1 AND scope_key = $2",
            &[scope.kind().into(), scope.key().into()],
        )
        .await?;
    Ok(removed > 0)
}

/// Lists gates that have not ended.
pub(crate) async fn list(sql: &Sql<'_>, now: Timestamp) -> Result<Vec<Gate>, StoreError> {
    let rows = sql
        .query(
            "SELECT scope_kind, scope_key, automatic, action, per_minute, reason, created_at, ends_at, set_by FROM gates
             WHERE ends_at IS NULL OR ends_at > $1 ORDER BY scope_kind, scope_key, automatic",
            &[now.into()],
        )
        .await?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Gate, StoreError> {
    let (kind, key) = (row.text(0)?, row.text(1)?);
    let scope = GateScope::from_parts(&kind, &key)
        .ok_or_else(|| StoreError::Internal(format!("a gate has the unknown scope {kind:?} {key:?}")))?;
    let action = match (row.text(3)?.as_str(), row.int_opt(4)?) {
        (SUSPEND, _) => GateAction::Suspend,
        (SLOW, Some(per_minute)) => GateAction::Slow { per_minute: per_minute as u32 },
        (action, per_minute) => {
            let problem = format!("a gate has the unknown action {action:?} with {per_minute:?} a minute");
            return Err(StoreError::Internal(problem));
        }
    };
    Ok(Gate {
        scope,
        action,
        reason: row.text(5)?,
        automatic: row.flag(2)?,
        created_at: row.time(6)?,
        ends_at: row.time_opt(7)?,
        set_by: SetBy::from_stored(row.text_opt(8)?.as_deref()),
    })
}
