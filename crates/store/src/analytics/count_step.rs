//! Counts the next events of a server.

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;

use super::tally::{CountingRules, Tally};
use super::uncounted::Uncounted;
use super::{counters, uncounted};
use crate::{Result, Store};

/// Maximum number of events read at once. Events of a minute with the same dimensions change the same rows, so the more
/// are counted together, the fewer rows are read and written.
const EVENTS_READ_MAX: usize = 2_000;
/// Approximate limit of rows written in one transaction, so that other writers wait only briefly. A batch with
/// many different minutes or dimensions reaches this limit before `EVENTS_READ_MAX`.
const ROWS_PER_TRANSACTION: usize = 1_000;
/// Maximum number of transactions in one call of `count_events`. The next call reads the remaining events again.
const TRANSACTIONS_PER_CALL_MAX: usize = 4;

/// Result of one call of `count_events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountProgress {
    /// No events are left.
    AllDone,
    /// There may be more events.
    MoreLeft,
    /// This call did not count all the events that it read: another node counted them first, or retention removed a
    /// combination of dimension values meanwhile.
    Overtaken,
}

#[boxed_futures]
impl Store {
    /// The servers that have uncounted events.
    pub async fn list_uncounted_servers(&self) -> Result<Vec<ServerId>> {
        self.read(|sql| Box::pin(uncounted::list_uncounted_servers(sql))).await
    }

    /// Adds the next events of a server to its counters. Writes the sums and the position after the counted events in
    /// one transaction: each event counts once, even after crashes and with several nodes.
    pub async fn count_events(&self, server_id: ServerId, rules: &CountingRules) -> Result<CountProgress> {
        let rules = rules.clone();
        let uncounted = self
            .read(move |sql| {
                Box::pin(
                    async move { uncounted::read_uncounted(sql, server_id, &rules, EVENTS_READ_MAX).await },
                )
            })
            .await?;
        if uncounted.to == uncounted.from {
            return Ok(CountProgress::AllDone);
        }
        let Uncounted { mut from, to, is_full, events, providers, holds } = uncounted;
        let mut rest = &events[..];
        for _ in 0..TRANSACTIONS_PER_CALL_MAX {
            let tally = Tally::of(rest, &providers, &holds, ROWS_PER_TRANSACTION);
            let (counted, later) = rest.split_at(tally.event_count);
            rest = later;
            let end = counted.last().filter(|_| !rest.is_empty()).map_or(to, |last| last.cursor);
            let additions = self.read(move |sql| Box::pin(counters::prepare(sql, server_id, tally))).await?;
            let added = self
                .write(move |sql| {
                    Box::pin(async move { counters::add(sql, server_id, from, end, &additions).await })
                })
                .await?;
            if !added {
                return Ok(CountProgress::Overtaken);
            }
            if rest.is_empty() {
                return Ok(if is_full { CountProgress::MoreLeft } else { CountProgress::AllDone });
            }
            from = end;
        }
        Ok(CountProgress::MoreLeft)
    }
}
