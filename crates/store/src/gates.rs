//! Gates: suspensions and slow-downs of one scope of delivery, set by people or by adaptive pacing.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{GateAction, GateScope, Timestamp};

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
    pub created_at: Timestamp,
    pub ends_at: Option<Timestamp>,
}

#[boxed_futures]
impl Store {
    /// Replaces the gate of the same kind, a person's or an automatic one, on the same scope.
    pub async fn set_gate(&self, new: NewGate) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(set(sql, new, now))).await
    }

    /// Removes the gates of a scope, a person's and an automatic one. Returns whether there was any.
    pub async fn remove_gate(&self, scope: GateScope) -> Result<bool> {
        self.change(move |sql| Box::pin(remove(sql, scope))).await
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

async fn set(sql: &Sql<'_>, new: NewGate, now: Timestamp) -> Result<(), StoreError> {
    let (action, per_minute) = match new.action {
        GateAction::Suspend => (SUSPEND, None),
        GateAction::Slow { per_minute } => (SLOW, Some(i64::from(per_minute))),
    };
    sql.execute(
        "INSERT INTO gates (scope_kind, scope_key, automatic, action, per_minute, reason, created_at, ends_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (scope_kind, scope_key, automatic) DO UPDATE
             SET action = excluded.action, per_minute = excluded.per_minute, reason = excluded.reason,
                 created_at = excluded.created_at, ends_at = excluded.ends_at",
        &[
            new.scope.kind().into(),
            new.scope.key().into(),
            new.automatic.into(),
            action.into(),
            per_minute.into(),
            new.reason.into(),
            now.into(),
            new.ends_at.into(),
        ],
    )
    .await?;
    Ok(())
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
            "SELECT scope_kind, scope_key, automatic, action, per_minute, reason, created_at, ends_at FROM gates
             WHERE ends_at IS NULL OR ends_at > $1 ORDER BY scope_kind, scope_key, automatic",
            &[now.into()],
        )
        .await?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Gate, StoreError> {
    let (kind, key) = (row.text(0)?, row.text(1)?);
    let scope = GateScope::from_parts(&kind, &key)
        .ok_or_else(|| StoreError::Internal(format!("a gate on {kind:?} {key:?}")))?;
    let action = match (row.text(3)?.as_str(), row.int_opt(4)?) {
        (SUSPEND, _) => GateAction::Suspend,
        (SLOW, Some(per_minute)) => GateAction::Slow { per_minute: per_minute as u32 },
        (other, _) => return Err(StoreError::Internal(format!("a gate that does {other:?}"))),
    };
    Ok(Gate {
        scope,
        action,
        reason: row.text(5)?,
        automatic: row.flag(2)?,
        created_at: row.time(6)?,
        ends_at: row.time_opt(7)?,
    })
}
