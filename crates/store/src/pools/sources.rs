//! Source addresses of pools: add, list with today's counts, change, remove.

use std::net::IpAddr;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, DomainName, PoolId, ServerId, SourceId, Timestamp};

use super::source_days::{SourceCounts, day_of, read_counts};
use crate::error::StoreError;
use crate::setup::UpdateResult;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSource {
    pub pool_id: PoolId,
    pub address: IpAddr,
    /// HELO name; the PTR record of the address should match it.
    pub helo: DomainName,
    pub weight: u32,
    pub warmup_started_at: Option<Timestamp>,
}

/// New values of a source; `None` keeps the stored value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceChange {
    pub helo: Option<DomainName>,
    pub weight: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub id: SourceId,
    pub pool_id: PoolId,
    pub address: IpAddr,
    pub helo: DomainName,
    pub weight: u32,
    /// Incremented by every change.
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// `None` for an address that is warm.
    pub warmup_started_at: Option<Timestamp>,
    pub warmup_paused_reason: Option<String>,
    /// When the running pause began; the days of the pause are added to `warmup_days_paused` when it ends.
    pub warmup_paused_at: Option<Timestamp>,
    /// Days of earlier pauses, which the warm-up plan does not count.
    pub warmup_days_paused: u32,
    /// Messages sent since midnight UTC.
    pub sent_today: u64,
    pub bounced_today: u64,
    pub complained_today: u64,
    /// Counts since midnight UTC, by receiver group.
    pub today_by_provider: Vec<(String, SourceCounts)>,
    /// Counts of today and yesterday since the warm-up was started or resumed; only these counts can pause the warm-up
    /// automatically.
    pub warmup_counts: SourceCounts,
}

impl Source {
    /// The day of the warm-up plan, from zero; days of pauses do not count. `None` for a warm address.
    pub fn warmup_day(&self, now: Timestamp) -> Option<u32> {
        let until = self.warmup_paused_at.map_or(now, |paused_at| paused_at.min(now));
        let days = day_of(until) - day_of(self.warmup_started_at?) - i64::from(self.warmup_days_paused);
        Some(u32::try_from(days).unwrap_or(0))
    }
}

/// Servers whose source addresses are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceScope {
    All,
    /// All servers of the account.
    Account(AccountId),
    Server(ServerId),
}

/// Source addresses that these servers may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceList {
    pub sources: Vec<Source>,
    /// Whether some mail leaves from an address that the operating system chooses, because neither the server's pool
    /// nor the shared one has an address.
    pub uses_system_address: bool,
}

#[boxed_futures]
impl Store {
    /// The addresses of the pools that these servers may use: their own, and the shared one.
    pub async fn list_sources_of(&self, scope: SourceScope) -> Result<SourceList> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(list_sources_of(sql, scope, now))).await
    }

    /// `NotFound` without the pool, `Conflict` if the address is already in a pool.
    pub async fn add_source(&self, new: NewSource) -> Result<Source> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(add_source(sql, new, now))).await
    }

    pub async fn list_sources(&self) -> Result<Vec<Source>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(list_sources(sql, now))).await
    }

    /// `OtherVersion` if `if_version` is set and the source has another version.
    pub async fn update_source(
        &self,
        id: SourceId,
        if_version: Option<i64>,
        change: SourceChange,
    ) -> Result<UpdateResult<()>> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(update_source(sql, id, if_version, change, now))).await
    }

    pub async fn remove_source(&self, id: SourceId) -> Result<()> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(remove_source(sql, id, now))).await
    }
}

/// `NotFound` without the pool, `Conflict` if the address is already in a pool.
pub(crate) async fn add_source(sql: &Sql<'_>, new: NewSource, now: Timestamp) -> Result<Source, StoreError> {
    let row = sql
        .query_opt(
            "INSERT INTO sources (pool_id, address, helo, weight, warmup_started_at, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING id",
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
    super::touch(sql, new.pool_id, now).await?;
    let sources = list_sources(sql, now).await?;
    sources.into_iter().find(|source| source.id == id).ok_or(StoreError::NotFound)
}

/// SQL condition: at least one new value differs from the stored one. Otherwise the version stays.
macro_rules! is_changed {
    () => {
        "(helo, weight) IS DISTINCT FROM (coalesce($2, helo), coalesce($3, weight))"
    };
}

async fn update_source(
    sql: &Sql<'_>,
    id: SourceId,
    if_version: Option<i64>,
    change: SourceChange,
    now: Timestamp,
) -> Result<UpdateResult<()>, StoreError> {
    let changed = sql
        .execute(
            concat!(
                "UPDATE sources SET helo = coalesce($2, helo), weight = coalesce($3, weight),
                     version = version + CASE WHEN ",
                is_changed!(),
                " THEN 1 ELSE 0 END, updated_at = CASE WHEN ",
                is_changed!(),
                " THEN $5 ELSE updated_at END
             WHERE id = $1 AND version = coalesce($4, version)"
            ),
            &[
                id.0.into(),
                change.helo.as_ref().map(DomainName::as_str).into(),
                change.weight.map(i64::from).into(),
                if_version.into(),
                now.into(),
            ],
        )
        .await?;
    if changed > 0 {
        return Ok(UpdateResult::Done(()));
    }
    let row = sql.query_opt("SELECT version FROM sources WHERE id = $1", &[id.0.into()]).await?;
    Ok(UpdateResult::OtherVersion(row.ok_or(StoreError::NotFound)?.int(0)?))
}

async fn remove_source(sql: &Sql<'_>, id: SourceId, now: Timestamp) -> Result<(), StoreError> {
    let text = "DELETE FROM sources WHERE id = $1 RETURNING pool_id";
    let row = sql.query_opt(text, &[id.0.into()]).await?.ok_or(StoreError::NotFound)?;
    super::touch(sql, PoolId(row.int(0)?), now).await?;
    sql.execute("DELETE FROM source_days WHERE source_id = $1", &[id.0.into()]).await?;
    Ok(())
}

/// Sources with their counts of today.
pub(crate) async fn list_sources(sql: &Sql<'_>, now: Timestamp) -> Result<Vec<Source>, StoreError> {
    let rows = sql
        .query(
            "SELECT id, pool_id, address, helo, weight, warmup_started_at, warmup_paused_reason, warmup_paused_at,
                    warmup_days_paused, version, created_at, updated_at FROM sources ORDER BY id",
            &[],
        )
        .await?;
    let mut sources = rows.iter().map(read_source).collect::<Result<Vec<_>, StoreError>>()?;
    let today = day_of(now);
    let days = sql
        .query(
            "SELECT source_id, provider, sent, bounced, complained, sent - sent_before, bounced - bounced_before,
                    complained - complained_before, day
             FROM source_days WHERE day IN ($1, $2) ORDER BY source_id, provider",
            &[today.into(), (today - 1).into()],
        )
        .await?;
    for row in &days {
        let id = SourceId(row.int(0)?);
        if let Some(source) = sources.iter_mut().find(|source| source.id == id) {
            let (counts, warmup_counts) = (read_counts(row, 2)?, read_counts(row, 5)?);
            // Bounces and complaints arrive hours after their messages, often on the next day.
            source.warmup_counts.sent += warmup_counts.sent;
            source.warmup_counts.bounced += warmup_counts.bounced;
            source.warmup_counts.complained += warmup_counts.complained;
            if row.int(8)? == today {
                source.sent_today += counts.sent;
                source.bounced_today += counts.bounced;
                source.complained_today += counts.complained;
                source.today_by_provider.push((row.text(1)?, counts));
            }
        }
    }
    Ok(sources)
}

async fn list_sources_of(
    sql: &Sql<'_>,
    scope: SourceScope,
    now: Timestamp,
) -> Result<SourceList, StoreError> {
    let (text, id) = match scope {
        SourceScope::All => ("SELECT DISTINCT pool_id FROM servers WHERE CAST($1 AS BIGINT) = 0", 0),
        SourceScope::Account(id) => ("SELECT DISTINCT pool_id FROM servers WHERE account_id = $1", id.0),
        SourceScope::Server(id) => ("SELECT pool_id FROM servers WHERE id = $1", id.0),
    };
    let rows = sql.query(text, &[id.into()]).await?;
    let own_pools =
        rows.iter().map(|row| Ok(row.int_opt(0)?.map(PoolId))).collect::<Result<Vec<_>, StoreError>>()?;
    let shared = sql.query_opt("SELECT id FROM pools WHERE shared = 1", &[]).await?;
    let shared = shared.map(|row| row.int(0)).transpose()?.map(PoolId);
    let mut sources = list_sources(sql, now).await?;
    let has_sources = |pool: PoolId| sources.iter().any(|source| source.pool_id == pool);
    let is_without_sources = |pool: &Option<PoolId>| !pool.or(shared).is_some_and(has_sources);
    // As delivery chooses the address: the server's own pool, else the shared one, else the operating system's choice.
    let uses_system_address = !shared.is_some_and(has_sources)
        && (own_pools.is_empty() || own_pools.iter().any(is_without_sources));
    sources.retain(|source| Some(source.pool_id) == shared || own_pools.contains(&Some(source.pool_id)));
    Ok(SourceList { sources, uses_system_address })
}

fn read_source(row: &Row) -> Result<Source, StoreError> {
    Ok(Source {
        id: SourceId(row.int(0)?),
        pool_id: PoolId(row.int(1)?),
        address: row.parsed(2, |text| text.parse::<IpAddr>().ok())?,
        helo: row.parsed(3, |text| DomainName::parse(text).ok())?,
        weight: row.int(4)? as u32,
        version: row.int(9)?,
        created_at: row.time(10)?,
        updated_at: row.time(11)?,
        warmup_started_at: row.time_opt(5)?,
        warmup_paused_reason: row.text_opt(6)?,
        warmup_paused_at: row.time_opt(7)?,
        warmup_days_paused: row.int(8)? as u32,
        sent_today: 0,
        bounced_today: 0,
        complained_today: 0,
        today_by_provider: Vec::new(),
        warmup_counts: SourceCounts::default(),
    })
}
