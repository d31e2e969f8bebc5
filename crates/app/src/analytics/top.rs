//! analytics/top: the largest values of one dimension, including recipient domains, which are too many for a
//! timeseries.

use std::collections::HashMap;

use postroad_boxed_futures::boxed_futures;
use postroad_model::Timestamp;
use postroad_store::{Counts, Dimension, Grain, Metric, Sums};

use super::collect::CounterSelection;
use super::dimension::DimensionValue;
use super::figures::Figures;
use super::plan::counter_ranges;
use super::summary::{at_second, check_length, whole_spans};
use super::{DEFAULT_RANGE, Filter, invalid_field};
use crate::{App, Caller, Refusal};

/// Maximum number of rows added up for one answer. There is one row for each recipient domain and block of days.
const ROWS_MAX: usize = 500_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopBy {
    Dimension(Dimension),
    /// Recipient domains are counted by whole UTC days, without filters and latencies.
    RecipientDomain,
}

#[derive(Debug, Clone)]
pub struct TopQuery {
    /// Start; 30 days before `to` if left out.
    pub from: Option<Timestamp>,
    /// End; now if left out.
    pub to: Option<Timestamp>,
    pub by: TopBy,
    pub metric: Metric,
    pub filters: Vec<Filter>,
    pub include_bots: bool,
    pub limit: usize,
}

#[derive(Debug, Clone)]
pub struct Top {
    pub from: Timestamp,
    pub to: Timestamp,
    /// Largest first; values with a metric of 0 are left out.
    pub entries: Vec<TopEntry>,
    pub is_current: bool,
    /// True if tags, templates or source addresses that the query uses are counted together, because there are too
    /// many.
    pub has_other: bool,
}

#[derive(Debug, Clone)]
pub struct TopEntry {
    pub value: DimensionValue,
    pub figures: Figures,
}

#[boxed_futures]
impl App {
    pub async fn analytics_top(&self, caller: &Caller, query: &TopQuery) -> Result<Top, Refusal> {
        let (from, to) = self.range(query.from, query.to, DEFAULT_RANGE)?;
        let grain = match query.by {
            TopBy::RecipientDomain => Grain::Day,
            TopBy::Dimension(_) => Grain::Quarter,
        };
        let borders = whole_spans(grain, from, to);
        check_length(borders)?;
        let is_current = self.catch_up(caller.server_id).await?;
        let (entries, has_other) = match query.by {
            TopBy::RecipientDomain => (self.top_recipient_domains(caller, query, borders).await?, false),
            TopBy::Dimension(dimension) => {
                let (sums, has_other) = self.sums_by(caller, query, dimension, &borders).await?;
                (largest(sums, query), has_other)
            }
        };
        let [from, to] = borders.map(at_second);
        Ok(Top { from, to, entries, is_current, has_other })
    }

    /// Sums by value of the dimension, and `CounterSums::has_other`.
    async fn sums_by(
        &self,
        caller: &Caller,
        query: &TopQuery,
        dimension: Dimension,
        borders: &[i64],
    ) -> Result<(HashMap<DimensionValue, Sums>, bool), Refusal> {
        let selection = CounterSelection {
            dimensions: &[dimension],
            filters: &query.filters,
            borders,
            ranges: &counter_ranges(borders),
        };
        let found = self.sum_counters(caller, &selection).await?;
        let add_up = |(group, spans): (Vec<DimensionValue>, HashMap<usize, Sums>)| {
            let mut all = Sums::default();
            for sums in spans.values() {
                all.add(sums);
            }
            (group.into_iter().next().unwrap_or(DimensionValue::None), all)
        };
        Ok((found.group_sums.into_iter().map(add_up).collect(), found.has_other))
    }

    async fn top_recipient_domains(
        &self,
        caller: &Caller,
        query: &TopQuery,
        [from, to]: [i64; 2],
    ) -> Result<Vec<TopEntry>, Refusal> {
        if !query.filters.is_empty() {
            return Err(invalid_field(
                "/filters",
                "Recipient domains are not counted by other dimensions; leave `filters` out",
            ));
        }
        let _permit = self.inner.long_reads.permit(caller.account_id).await;
        let found = self.inner.store.list_recipient_domains(caller.server_id, (from, to), ROWS_MAX).await?;
        let mut found = found.ok_or_else(too_many_domains)?;
        if found.len() > query.limit {
            // Select the largest before sorting: there may be a hundred thousand domains.
            found.select_nth_unstable_by(query.limit, |(a_domain, a), (b_domain, b)| {
                size(b, query).cmp(&size(a, query)).then_with(|| a_domain.cmp(b_domain))
            });
            found.truncate(query.limit);
        }
        let sums = |(domain, counts)| (DimensionValue::Text(domain), Sums { counts, ..Sums::default() });
        Ok(largest(found.into_iter().map(sums), query))
    }
}

fn too_many_domains() -> Refusal {
    let text = "There are too many recipient domains in this range to add up at once; take a shorter range";
    invalid_field("/from", text)
}

/// The largest entries, at most `query.limit`. Figures are computed only for these.
fn largest(sums: impl IntoIterator<Item = (DimensionValue, Sums)>, query: &TopQuery) -> Vec<TopEntry> {
    let mut sized: Vec<(u64, DimensionValue, Sums)> = sums
        .into_iter()
        .map(|(value, sums)| (size(&sums.counts, query), value, sums))
        .filter(|(size, ..)| *size > 0)
        .collect();
    let order = |a: &(u64, DimensionValue, Sums), b: &(u64, DimensionValue, Sums)| {
        b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1))
    };
    sized.sort_unstable_by(order);
    sized.truncate(query.limit);
    let entry = |(_, value, sums)| TopEntry { value, figures: Figures::of(sums, query.include_bots) };
    sized.into_iter().map(entry).collect()
}

fn size(counts: &Counts, query: &TopQuery) -> u64 {
    if query.include_bots {
        counts.clone().including_bots().of(query.metric)
    } else {
        counts.of(query.metric)
    }
}
