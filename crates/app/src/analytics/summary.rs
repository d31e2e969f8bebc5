//! analytics/summary: counts and rates of a time range.

use postroad_boxed_futures::boxed_futures;
use postroad_model::Timestamp;
use postroad_store::{Grain, Sums};

use super::collect::CounterSelection;
use super::figures::Figures;
use super::plan::counter_ranges;
use super::{DEFAULT_RANGE, Filter, invalid_field};
use crate::{App, Caller, Refusal};

/// Longest range of analytics/summary, analytics/top, and the figures by server.
const RANGE_DAYS_MAX: i64 = 1_100;

#[derive(Debug, Clone)]
pub struct SummaryQuery {
    /// Start; 30 days before `to` if left out.
    pub from: Option<Timestamp>,
    /// End; now if left out.
    pub to: Option<Timestamp>,
    pub filters: Vec<Filter>,
    pub include_bots: bool,
}

#[derive(Debug, Clone)]
pub struct Summary {
    /// Start, rounded down to a quarter of an hour; `to` is rounded up.
    pub from: Timestamp,
    pub to: Timestamp,
    pub figures: Figures,
    /// False if the newest events are not counted yet.
    pub is_current: bool,
    /// True if tags, templates or source addresses that the query uses are counted together, because there are too
    /// many.
    pub has_other: bool,
}

#[boxed_futures]
impl App {
    pub async fn analytics_summary(&self, caller: &Caller, query: &SummaryQuery) -> Result<Summary, Refusal> {
        let (from, to) = self.range(query.from, query.to, DEFAULT_RANGE)?;
        let borders = whole_spans(Grain::Quarter, from, to);
        check_length(borders)?;
        let is_current = self.catch_up(caller.server_id).await?;
        let selection = CounterSelection {
            dimensions: &[],
            filters: &query.filters,
            borders: &borders,
            ranges: &counter_ranges(&borders),
        };
        let mut all = Sums::default();
        let found = self.sum_counters(caller, &selection).await?;
        for spans in found.group_sums.into_values() {
            for sums in spans.values() {
                all.add(sums);
            }
        }
        let [from, to] = borders.map(at_second);
        let figures = Figures::of(all, query.include_bots);
        Ok(Summary { from, to, figures, is_current, has_other: found.has_other })
    }
}

pub(super) fn at_second(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

/// Start of the first span that the range touches, and end of the last one.
pub(super) fn whole_spans(grain: Grain, from: Timestamp, to: Timestamp) -> [i64; 2] {
    let last = Timestamp::from_micros(to.as_micros() - 1);
    [grain.start(from), grain.start(last) + grain.seconds()]
}

pub(super) fn check_length([from, to]: [i64; 2]) -> Result<(), Refusal> {
    if to - from > RANGE_DAYS_MAX * Grain::Day.seconds() {
        return Err(invalid_field("/from", format!("The range may be at most {RANGE_DAYS_MAX} days")));
    }
    Ok(())
}
