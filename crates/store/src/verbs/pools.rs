//! Pools and their source addresses: create, list, delete, warm up.

use std::collections::BTreeSet;
use std::net::IpAddr;

use postroad_model::{DomainName, EventKind, IdGenerator, PoolId, SourceId, Timestamp};
use serde_json::json;

use super::events;
use super::finish::day_of;
use crate::error::StoreError;
use crate::records::{NewEvent, NewSource, Pool, Source, SourceCounts, SourceDay, WarmupPause};
use crate::sql::{Row, Sql};

const DAY_MICROS: i64 = 24 * 3_600 * 1_000_000;

/// `Conflict` if the name is taken, or the pool is to be the shared one and there is one.
pub(crate) async fn create(
    sql: &Sql<'_>,
    name: String,
    shared: bool,
    now: Timestamp,
) -> Result<Pool, StoreError> {
    let row = sql
        .query_opt(
            "INSERT INTO pools (name, shared, created_at) VALUES ($1, $2, $3) RETURNING id, name, shared",
            &[name.into(), shared.into(), now.into()],
        )
        .await?;
    read_pool(&row.ok_or(StoreError::Conflict)?)
}

pub(crate) async fn list(sql: &Sql<'_>) -> Result<Vec<Pool>, StoreError> {
    sql.query("SELECT id, name, shared FROM pools ORDER BY id", &[]).await?.iter().map(read_pool).collect()
}

/// `InUse` while servers send from it or it has sources.
pub(crate) async fn delete(sql: &Sql<'_>, id: PoolId) -> Result<(), StoreError> {
    let deleted = sql
        .execute(
            "DELETE FROM pools WHERE id = $1
             AND NOT EXISTS (SELECT 1 FROM servers WHERE servers.pool_id = pools.id)
             AND NOT EXISTS (SELECT 1 FROM sources WHERE sources.pool_id = pools.id)",
            &[id.0.into()],
        )
        .await?;
    let is_there = sql.query_opt("SELECT id FROM pools WHERE id = $1", &[id.0.into()]).await?.is_some();
    match (deleted, is_there) {
        (0, true) => Err(StoreError::InUse),
        (0, false) => Err(StoreError::NotFound),
        _ => Ok(()),
    }
}

/// `NotFound` without the pool, `Conflict` if the address is in a pool already.
pub(crate) async fn add_source(sql: &Sql<'_>, new: NewSource, now: Timestamp) -> Result<Source, StoreError> {
    let row = sql
        .query_opt(
            "INSERT INTO sources (pool_id, address, helo, weight, warmup_started_at, created_at)
             VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
            &[
                new.pool_id.0.into(),
                new.address.to_string().into(),
                new.helo.as_str().into(),
                i64::from(new.weight).into(),
                new.warmup_started_at.into(),
                now.into(),
            ],
        )
        .await?;
    let id = SourceId(row.ok_or(StoreError::Conflict)?.int(0)?);
    let sources = list_sources(sql, now).await?;
    sources.into_iter().find(|source| source.id == id).ok_or(StoreError::NotFound)
}

pub(crate) async fn remove_source(sql: &Sql<'_>, id: SourceId) -> Result<(), StoreError> {
    sql.change("DELETE FROM sources WHERE id = $1", &[id.0.into()]).await?;
    sql.execute("DELETE FROM source_days WHERE source_id = $1", &[id.0.into()]).await?;
    Ok(())
}

/// Begins a warm-up anew; `started_at` of `None` says that the address is warm.
pub(crate) async fn set_warmup(
    sql: &Sql<'_>,
    id: SourceId,
    started_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.change(
        "UPDATE sources SET warmup_started_at = $2, warmup_paused_reason = NULL, warmup_paused_at = NULL,
             warmup_days_paused = 0
         WHERE id = $1",
        &[id.0.into(), started_at.into()],
    )
    .await?;
    judge_from_now(sql, id, now).await
}

/// Goes on with a paused warm-up on the day of its plan on which it was paused.
pub(crate) async fn resume_warmup(sql: &Sql<'_>, id: SourceId, now: Timestamp) -> Result<(), StoreError> {
    let row = sql
        .query_opt("SELECT warmup_paused_reason, warmup_paused_at FROM sources WHERE id = $1", &[id.0.into()])
        .await?
        .ok_or(StoreError::NotFound)?;
    if row.text_opt(0)?.is_none() {
        return Ok(());
    }
    let days = row.time_opt(1)?.map_or(0, |paused_at| (day_of(now) - day_of(paused_at)).max(0));
    sql.change(
        "UPDATE sources SET warmup_paused_reason = NULL, warmup_paused_at = NULL,
             warmup_days_paused = warmup_days_paused + $2
         WHERE id = $1",
        &[id.0.into(), days.into()],
    )
    .await?;
    judge_from_now(sql, id, now).await
}

/// What was counted today does not pause the warm-up again.
async fn judge_from_now(sql: &Sql<'_>, id: SourceId, now: Timestamp) -> Result<(), StoreError> {
    sql.execute(
        "UPDATE source_days SET sent_before = sent, bounced_before = bounced, complained_before = complained
         WHERE source_id = $1 AND day = $2",
        &[id.0.into(), day_of(now).into()],
    )
    .await?;
    Ok(())
}

/// Pauses a warm-up that is running, and tells these servers. `false` if somebody was faster.
pub(crate) async fn pause_warmup(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    pause: &WarmupPause,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let row = sql
        .query_opt(
            "UPDATE sources SET warmup_paused_reason = $2, warmup_paused_at = $3
             WHERE id = $1 AND warmup_started_at IS NOT NULL AND warmup_paused_reason IS NULL
             RETURNING address",
            &[pause.source_id.0.into(), pause.reason.as_str().into(), now.into()],
        )
        .await?;
    let Some(row) = row else { return Ok(false) };
    let data = json!({ "address": row.text(0)?, "pool": pause.pool, "reason": pause.reason }).to_string();
    let event = NewEvent { kind: EventKind::IpWarmupPaused, data };
    // In one order, so that two nodes do not wait for each other in a circle.
    for server_id in &pause.servers.iter().copied().collect::<BTreeSet<_>>() {
        events::add_of_server(sql, ids, *server_id, &event, now).await?;
    }
    Ok(true)
}

/// With what each did today.
pub(crate) async fn list_sources(sql: &Sql<'_>, now: Timestamp) -> Result<Vec<Source>, StoreError> {
    let rows = sql
        .query(
            "SELECT s.id, s.pool_id, s.address, s.helo, s.weight, s.warmup_started_at, s.warmup_paused_reason,
                    coalesce(d.sent, 0), coalesce(d.bounced, 0), coalesce(d.complained, 0),
                    s.warmup_paused_at, s.warmup_days_paused, coalesce(d.sent - d.sent_before, 0),
                    coalesce(d.bounced - d.bounced_before, 0), coalesce(d.complained - d.complained_before, 0)
             FROM sources s LEFT JOIN source_days d ON d.source_id = s.id AND d.day = $1 ORDER BY s.id",
            &[day_of(now).into()],
        )
        .await?;
    rows.iter().map(read_source).collect()
}

/// In time order.
pub(crate) async fn list_days(sql: &Sql<'_>, id: SourceId) -> Result<Vec<SourceDay>, StoreError> {
    let rows = sql
        .query(
            "SELECT day, sent, bounced, complained FROM source_days WHERE source_id = $1 ORDER BY day",
            &[id.0.into()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(SourceDay {
                day: Timestamp::from_micros(row.int(0)? * DAY_MICROS),
                sent: row.int(1)? as u64,
                bounced: row.int(2)? as u64,
                complained: row.int(3)? as u64,
            })
        })
        .collect()
}

fn read_pool(row: &Row) -> Result<Pool, StoreError> {
    Ok(Pool { id: PoolId(row.int(0)?), name: row.text(1)?, shared: row.flag(2)? })
}

fn read_source(row: &Row) -> Result<Source, StoreError> {
    Ok(Source {
        id: SourceId(row.int(0)?),
        pool_id: PoolId(row.int(1)?),
        address: row.name(2, |text| text.parse::<IpAddr>().ok())?,
        helo: row.name(3, |text| DomainName::parse(text).ok())?,
        weight: row.int(4)? as u32,
        warmup_started_at: row.time_opt(5)?,
        warmup_paused_reason: row.text_opt(6)?,
        sent_today: row.int(7)? as u64,
        bounced_today: row.int(8)? as u64,
        complained_today: row.int(9)? as u64,
        warmup_paused_at: row.time_opt(10)?,
        warmup_days_paused: row.int(11)? as u32,
        to_judge: SourceCounts {
            sent: row.int(12)? as u64,
            bounced: row.int(13)? as u64,
            complained: row.int(14)? as u64,
        },
    })
}
