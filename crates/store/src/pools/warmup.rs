//! Warm-up of source addresses: start, pause, resume.

use std::collections::BTreeSet;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{EventKind, IdGenerator, ServerId, SourceId, Timestamp};
use serde_json::json;

use super::source_days::day_of;
use crate::error::StoreError;
use crate::events::{NewEvent, append};
use crate::sql::Sql;
use crate::{Result, Store};

/// A warm-up to pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmupPause {
    pub source_id: SourceId,
    pub reason: String,
    /// The name of the address's pool.
    pub pool: String,
    /// Servers that send from the pool; each gets an event.
    pub servers: Vec<ServerId>,
}

#[boxed_futures]
impl Store {
    /// Starts or restarts a warm-up; `None` declares the address warm.
    pub async fn set_source_warmup(&self, id: SourceId, started_at: Option<Timestamp>) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(set_warmup(sql, id, started_at, now))).await
    }

    /// Pauses a running warm-up by hand, without events; a warm-up that is already paused keeps its reason.
    pub async fn pause_warmup_by_hand(&self, id: SourceId, reason: String) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(pause_by_hand(sql, id, reason, now))).await
    }

    /// Resumes a paused warm-up on the same day of its plan. Earlier counts do not pause the warm-up again.
    pub async fn resume_warmup(&self, id: SourceId) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(resume_warmup(sql, id, now))).await
    }

    /// Pauses a running warm-up, with an event for each server in `pause`. `false` if no warm-up is running.
    pub async fn pause_warmup(&self, pause: WarmupPause) -> Result<bool> {
        let now = self.clock.now();
        let paused = self
            .write_with_ids(move |sql, ids| {
                Box::pin(async move { pause_warmup(sql, &ids, &pause, now).await })
            })
            .await?;
        self.notify_change();
        self.notifier.notify_all();
        Ok(paused)
    }
}

/// Starts or restarts a warm-up; `None` declares the address warm.
pub(crate) async fn set_warmup(
    sql: &Sql<'_>,
    id: SourceId,
    started_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.execute_one(
        "UPDATE sources SET warmup_started_at = $2, warmup_paused_reason = NULL, warmup_paused_at = NULL,
             warmup_days_paused = 0, version = version + 1, updated_at = $3
         WHERE id = $1",
        &[id.0.into(), started_at.into(), now.into()],
    )
    .await?;
    reset_warmup_counts(sql, id, now).await
}

async fn pause_by_hand(
    sql: &Sql<'_>,
    id: SourceId,
    reason: String,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.execute(
        "UPDATE sources SET warmup_paused_reason = $2, warmup_paused_at = $3, version = version + 1, updated_at = $3
         WHERE id = $1 AND warmup_started_at IS NOT NULL AND warmup_paused_reason IS NULL",
        &[id.0.into(), reason.into(), now.into()],
    )
    .await?;
    Ok(())
}

/// Resumes a paused warm-up on the same day of its plan.
pub(crate) async fn resume_warmup(sql: &Sql<'_>, id: SourceId, now: Timestamp) -> Result<(), StoreError> {
    let row = sql
        .query_opt("SELECT warmup_paused_reason, warmup_paused_at FROM sources WHERE id = $1", &[id.0.into()])
        .await?
        .ok_or(StoreError::NotFound)?;
    if row.text_opt(0)?.is_none() {
        return Ok(());
    }
    let days = row.time_opt(1)?.map_or(0, |paused_at| (day_of(now) - day_of(paused_at)).max(0));
    sql.execute_one(
        "UPDATE sources SET warmup_paused_reason = NULL, warmup_paused_at = NULL,
             warmup_days_paused = warmup_days_paused + $2, version = version + 1, updated_at = $3
         WHERE id = $1",
        &[id.0.into(), days.into(), now.into()],
    )
    .await?;
    reset_warmup_counts(sql, id, now).await
}

/// Excludes the counts so far, including yesterday's, so that they do not pause the warm-up again.
async fn reset_warmup_counts(sql: &Sql<'_>, id: SourceId, now: Timestamp) -> Result<(), StoreError> {
    sql.execute(
        "UPDATE source_days SET sent_before = sent, bounced_before = bounced, complained_before = complained
         WHERE source_id = $1 AND day >= $2",
        &[id.0.into(), (day_of(now) - 1).into()],
    )
    .await?;
    Ok(())
}

/// Pauses a running warm-up, with an event for each server in `pause`. `false` if no warm-up is running.
pub(crate) async fn pause_warmup(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    pause: &WarmupPause,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let row = sql
        .query_opt(
            "UPDATE sources SET warmup_paused_reason = $2, warmup_paused_at = $3, version = version + 1, updated_at = $3
             WHERE id = $1 AND warmup_started_at IS NOT NULL AND warmup_paused_reason IS NULL
             RETURNING address",
            &[pause.source_id.0.into(), pause.reason.as_str().into(), now.into()],
        )
        .await?;
    let Some(row) = row else { return Ok(false) };
    let data = json!({ "address": row.text(0)?, "pool": pause.pool, "reason": pause.reason }).to_string();
    let event = NewEvent { kind: EventKind::IpWarmupPaused, data };
    // Servers are locked in a fixed order, to avoid deadlocks between nodes.
    for server_id in &pause.servers.iter().copied().collect::<BTreeSet<_>>() {
        append::append_server_event(sql, ids, *server_id, &event, now).await?;
    }
    Ok(true)
}
