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
            "SELECT id, pool_id, address, helo, weight, warmup_started_at, warmup_paused_reason, warmup_paused_at,
                    warmup_days_paused FROM sources ORDER BY id",
            &[],
        )
        .await?;
    let mut sources = rows.iter().map(read_source).collect::<Result<Vec<_>, StoreError>>()?;
    let today = sql
        .query(
            "SELECT source_id, provider, sent, bounced, complained, sent - sent_before, bounced - bounced_before,
                    complained - complained_before
             FROM source_days WHERE day = $1 ORDER BY source_id, provider",
            &[day_of(now).into()],
        )
        .await?;
    for row in &today {
        let id = SourceId(row.int(0)?);
        if let Some(source) = sources.iter_mut().find(|source| source.id == id) {
            let (counts, to_judge) = (read_counts(row, 2)?, read_counts(row, 5)?);
            source.sent_today += counts.sent;
            source.bounced_today += counts.bounced;
            source.complained_today += counts.complained;
            source.to_judge.sent += to_judge.sent;
            source.to_judge.bounced += to_judge.bounced;
            source.to_judge.complained += to_judge.complained;
            source.today_by_provider.push((row.text(1)?, counts));
        }
    }
    Ok(sources)
}

/// In time order, and by provider.
pub(crate) async fn list_days(sql: &Sql<'_>, id: SourceId) -> Result<Vec<SourceDay>, StoreError> {
    let rows = sql
        .query(
            "SELECT day, provider, sent, bounced, complained FROM source_days WHERE source_id = $1
             ORDER BY day, provider",
            &[id.0.into()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(SourceDay {
                day: Timestamp::from_micros(row.int(0)? * DAY_MICROS),
                provider: row.text(1)?,
                counts: read_counts(row, 2)?,
            })
        })
        .collect()
}

/// From this column on: sent, bounced, complained.
fn read_counts(row: &Row, at: usize) -> Result<SourceCounts, StoreError> {
    Ok(SourceCounts {
        sent: row.int(at)? as u64,
        bounced: row.int(at + 1)? as u64,
        complained: row.int(at + 2)? as u64,
    })
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
        warmup_paused_at: row.time_opt(7)?,
        warmup_days_paused: row.int(8)? as u32,
        sent_today: 0,
        bounced_today: 0,
        complained_today: 0,
        today_by_provider: Vec::new(),
        to_judge: SourceCounts::default(),
    })
}
