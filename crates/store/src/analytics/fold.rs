//! Add up the next events of a server.

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;

use super::tally::{CountingRules, Tally};
use super::uncounted::Uncounted;
use super::{counters, uncounted};
use crate::{Result, Store};

/// Events added up in one transaction.
const FOLD_EVENTS_MAX: usize = 500;
/// Rows that it writes, or little more: few enough to hold nobody up.
const FOLD_ROWS_MAX: usize = 1_000;

/// Progress of one turn of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountProgress {
    /// Nothing was left.
    AllDone,
    /// There may be more.
    Some,
    /// Another node was at it.
    Overtaken,
}

#[boxed_futures]
impl Store {
    /// The servers that have uncounted events.
    pub async fn list_uncounted_servers(&self) -> Result<Vec<ServerId>> {
        self.read(|sql| Box::pin(uncounted::list_uncounted_servers(sql))).await
    }

    /// Adds the next events of a server up. What they add and how far it went are one transaction: each event counts
    /// once, whoever crashes and however many are at it.
    pub async fn fold_events(&self, server_id: ServerId, rules: &CountingRules) -> Result<CountProgress> {
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
            (true, true) => CountProgress::Some,
            (true, false) => CountProgress::AllDone,
        })
    }
}
