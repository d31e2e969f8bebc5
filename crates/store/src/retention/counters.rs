//! Removes expired analytics counters.

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;

use super::removal::{ROWS_PER_STEP_MAX, RemovalProgress};
use crate::analytics::day_counts::block_start;
use crate::analytics::{Breakdown, Grain};
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Removes some counters of a grain from before a time (seconds since 1970).
    pub async fn remove_old_counters(&self, grain: Grain, before: i64) -> Result<RemovalProgress> {
        let found = self.read(move |sql| Box::pin(find_server_with_counters(sql, grain, before))).await?;
        let Some(server) = found else { return Ok(RemovalProgress::default()) };
        let rows = self
            .write(move |sql| Box::pin(remove_counters(sql, server, grain, before, ROWS_PER_STEP_MAX)))
            .await?;
        Ok(RemovalProgress { rows, has_more: rows > 0 })
    }

    /// Removes some counts of recipient domains from before a day, and dimension sets that were last counted before
    /// that day. `before` is the start of the day in seconds since 1970.
    pub async fn remove_old_day_counts(&self, before: i64) -> Result<RemovalProgress> {
        let found = self.read(move |sql| Box::pin(find_server_with_day_counts(sql, before))).await?;
        let Some(server) = found else { return Ok(RemovalProgress::default()) };
        let rows = self
            .write(move |sql| Box::pin(remove_day_counts(sql, server, before, ROWS_PER_STEP_MAX)))
            .await?;
        Ok(RemovalProgress { rows, has_more: rows > 0 })
    }
}

/// A server with counters of one grain from before a time (seconds since 1970). Each event also counts in the total
/// (`shape` 0), so the totals show whether there are any counters; totals are removed last.
pub(crate) async fn find_server_with_counters(
    sql: &Sql<'_>,
    grain: Grain,
    before: i64,
) -> Result<Option<ServerId>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT s.id FROM servers s WHERE EXISTS (
                 SELECT 1 FROM counters c WHERE c.server_id = s.id AND c.grain = $1 AND c.shape = 0 AND c.at < $2)
             LIMIT 1",
            &[grain.code().into(), before.into()],
        )
        .await?;
    row.map(|row| row.int(0).map(ServerId)).transpose()
}

pub(crate) async fn remove_counters(
    sql: &Sql<'_>,
    server_id: ServerId,
    grain: Grain,
    before: i64,
    limit: usize,
) -> Result<u64, StoreError> {
    let mut removed = 0;
    for breakdown in Breakdown::ALL.into_iter().rev() {
        if removed >= limit as u64 {
            break;
        }
        removed += sql
            .execute(
                "DELETE FROM counters WHERE server_id = $1 AND grain = $2 AND shape = $3 AND (at, dimensions) IN (
                     SELECT at, dimensions FROM counters WHERE server_id = $1 AND grain = $2 AND shape = $3 AND at < $4
                     LIMIT $5)",
                &[
                    server_id.0.into(),
                    grain.code().into(),
                    breakdown.code().into(),
                    before.into(),
                    (limit as i64 - removed as i64).into(),
                ],
            )
            .await?;
    }
    Ok(removed)
}

/// A server with recipient domains, or dimension sets, from before a day. Recipient domains are removed only in whole
/// blocks of days.
pub(crate) async fn find_server_with_day_counts(
    sql: &Sql<'_>,
    before: i64,
) -> Result<Option<ServerId>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT s.id FROM servers s
             WHERE EXISTS (SELECT 1 FROM recipient_domains r WHERE r.server_id = s.id AND r.block < $2)
                OR EXISTS (SELECT 1 FROM counter_dimensions d WHERE d.server_id = s.id AND d.last_day < $1)
             LIMIT 1",
            &[before.into(), block_start(before).into()],
        )
        .await?;
    row.map(|row| row.int(0).map(ServerId)).transpose()
}

pub(crate) async fn remove_day_counts(
    sql: &Sql<'_>,
    server_id: ServerId,
    before: i64,
    limit: usize,
) -> Result<u64, StoreError> {
    let params = |before: i64| [server_id.0.into(), before.into(), (limit as i64).into()];
    let domains = sql
        .execute(
            "DELETE FROM recipient_domains WHERE server_id = $1 AND (block, domain) IN (
                 SELECT block, domain FROM recipient_domains WHERE server_id = $1 AND block < $2 LIMIT $3)",
            &params(block_start(before)),
        )
        .await?;
    let dimension_sets = sql
        .execute(
            "DELETE FROM counter_dimensions WHERE server_id = $1 AND id IN (
                 SELECT id FROM counter_dimensions WHERE server_id = $1 AND last_day < $2 LIMIT $3)",
            &params(before),
        )
        .await?;
    Ok(domains + dimension_sets)
}
