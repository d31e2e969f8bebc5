//! Adds the next events of a server to its counters.

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;

use super::tally::{CountingRules, Tally};
use super::uncounted::Uncounted;
use super::{counters, uncounted};
use crate::{Result, Store};

/// Maximum number of events added to the counters in one transaction. The more, the fewer rows are read and written: all
/// events of a minute and a server usually change the same rows.
const FOLD_EVENTS_MAX: usize = 2_000;
/// Approximate limit of rows written in one transaction, so that other writers wait only briefly.
const FOLD_ROWS_MAX: usize = 1_000;

/// Result of one call of `count_events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountProgress {
    /// No events are left.
    AllDone,
    /// There may be more events.
    MoreLeft,
    /// Nothing was counted: another node counted the events first, or retention removed a combination of dimension
    /// values meanwhile.
    Overtaken,
}

#[boxed_futures]
impl Store {
    /// The servers that have uncounted events.
    pub async fn list_uncounted_servers(&self) -> Result<Vec<ServerId>> {
        self.read(|sql| Box::pin(uncounted::list_uncounted_servers(sql))).await
    }

    /// Adds the next events of a server to its counters. The sums and the new position are one transaction: each event
    /// counts once, even after crashes and with several nodes.
    pub async fn count_events(&self, server_id: ServerId, rules: &CountingRules) -> Result<CountProgress> {
        let rules = rules.clone();
        let uncounted = self
            .read(move |sql| {
                Box::pin(
                    async move { uncounted::read_uncounted(sql, server_id, &rules, FOLD_EVENTS_MAX).await },
                )
            })
            .await?;
        if uncounted.to == uncounted.from {
            return Ok(CountProgress::AllDone);
        }
        let Uncounted { from, mut to, mut is_full, events, providers, holds } = uncounted;
        let tally = Tally::of(&events, &providers, &holds, FOLD_ROWS_MAX);
        if let Some(last) = events[..tally.taken].last()
            && tally.taken < events.len()
        {
            (to, is_full) = (last.cursor, true);
        }
        let additions = self.read(move |sql| Box::pin(counters::prepare(sql, server_id, tally))).await?;
        let added = self
            .write(move |sql| {
                Box::pin(async move { counters::add(sql, server_id, from, to, &additions).await })
            })
            .await?;
        Ok(match (added, is_full) {
            (false, _) => CountProgress::Overtaken,
            (true, true) => CountProgress::MoreLeft,
            (true, false) => CountProgress::AllDone,
        })
    }
}
