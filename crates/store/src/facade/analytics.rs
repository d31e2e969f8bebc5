//! What happened, added up.

use postroad_model::{DomainName, ServerId};

use crate::counting::{CountingRules, Counts, Dimensions, Grain, Shape, Tally};
use crate::records::{CountProgress, CounterRow};
use crate::verbs::counting::Uncounted;
use crate::verbs::{counter_reads, counters, counting, recipient_providers};
use crate::{Result, Store};

/// Events added up in one transaction.
const FOLD_EVENTS_MAX: usize = 500;
/// Rows that it writes, or little more: few enough to hold nobody up.
const FOLD_ROWS_MAX: usize = 1_000;

impl Store {
    /// The servers that have uncounted events.
    pub async fn list_uncounted_servers(&self) -> Result<Vec<ServerId>> {
        self.read(|sql| Box::pin(counting::list_uncounted_servers(sql))).await
    }

    /// Adds the next events of a server up. What they add and how far it went are one transaction: each event counts
    /// once, whoever crashes and however many are at it.
    pub async fn fold_events(&self, server_id: ServerId, rules: &CountingRules) -> Result<CountProgress> {
        let rules = rules.clone();
        let uncounted = self
            .read(move |sql| {
                Box::pin(
                    async move { counting::read_uncounted(sql, server_id, &rules, FOLD_EVENTS_MAX).await },
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

    /// The counters of one shape, of spans that begin in one of these ranges (from, and before; seconds since 1970). At most
    /// `limit` rows, in no order.
    pub async fn list_counters(
        &self,
        server_id: ServerId,
        kind: (Grain, Shape),
        ranges: Vec<(i64, i64)>,
        limit: usize,
    ) -> Result<Vec<CounterRow>> {
        self.read(move |sql| {
            Box::pin(async move { counter_reads::list_counters(sql, server_id, kind, &ranges, limit).await })
        })
        .await
    }

    /// The counters of these sets of dimensions in the spans that begin at these moments, each by its key: as many looks as
    /// there are sets times spans, however many other sets there are.
    pub async fn find_counters(
        &self,
        server_id: ServerId,
        kind: (Grain, Shape),
        numbers: Vec<i64>,
        spans: Vec<i64>,
    ) -> Result<Vec<CounterRow>> {
        self.read(move |sql| {
            Box::pin(
                async move { counter_reads::find_counters(sql, server_id, kind, &numbers, &spans).await },
            )
        })
        .await
    }

    /// The sets of dimensions of a server that were counted on this day or later, with their numbers. `None` if
    /// there are more than `sets_max`.
    pub async fn list_dimensions(
        &self,
        server_id: ServerId,
        shape: Shape,
        since_day: i64,
        sets_max: usize,
    ) -> Result<Option<Vec<(i64, Dimensions)>>> {
        self.read(move |sql| {
            Box::pin(counter_reads::list_dimensions(sql, server_id, shape, since_day, sets_max))
        })
        .await
    }

    /// Counts by recipient domain, of whole days (UTC, seconds of their start). `None` if that would take more than
    /// `rows_max` rows: one for each domain and block of days.
    pub async fn list_recipient_domains(
        &self,
        server_id: ServerId,
        range: (i64, i64),
        rows_max: usize,
    ) -> Result<Option<Vec<(String, Counts)>>> {
        self.read(move |sql| Box::pin(counter_reads::list_recipient_domains(sql, server_id, range, rows_max)))
            .await
    }

    /// Notes whose mail servers these domains have.
    pub async fn learn_recipient_providers(&self, found: Vec<(DomainName, String)>) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(async move { recipient_providers::learn(sql, &found, now).await }))
            .await
    }
}
