//! analytics/timeseries: figures by minute, hour, day or month, split by up to two dimensions.

use std::collections::HashMap;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::Timestamp;
use postroad_store::{Dimension, Grain, Metric, Sums};

use super::collect::{CounterSelection, CounterSums, Group, GroupSums};
use super::dimension::{DimensionValue, Filter};
use super::figures::Figures;
use super::plan::{CounterRange, counter_ranges};
use super::summary::at_second;
use super::zone::{Granularity, Zone};
use super::{DEFAULT_RANGE, invalid_field};
use crate::{App, Caller, Refusal};

/// Maximum number of points in an answer, of all series together.
const POINTS_MAX: usize = 10_000;
/// Maximum number of series in an answer.
const SERIES_MAX: usize = 500;
/// Longest range of figures by minute.
const MINUTES_RANGE_MAX: Duration = Duration::from_hours(48);
/// Maximum number of dimensions by which one call splits the figures.
pub const DIMENSIONS_MAX: usize = 2;

#[derive(Debug, Clone)]
pub struct TimeseriesQuery {
    /// Start; if left out, a time before `to` that depends on the granularity.
    pub from: Option<Timestamp>,
    /// End; now if left out.
    pub to: Option<Timestamp>,
    pub granularity: Granularity,
    pub zone: Zone,
    pub dimensions: Vec<Dimension>,
    pub filters: Vec<Filter>,
    pub include_bots: bool,
}

#[derive(Debug, Clone)]
pub struct Timeseries {
    /// Start of the first span and end of the last.
    pub from: Timestamp,
    pub to: Timestamp,
    /// Largest first; the series with `is_rest`, if there is one, is last.
    pub series: Vec<Series>,
    pub is_current: bool,
    /// True if tags, templates or source addresses that the query uses are counted together, because there are too
    /// many.
    pub has_other: bool,
}

#[derive(Debug, Clone)]
pub struct Series {
    /// Values of the requested dimensions; all `None` if `is_rest`.
    pub values: Vec<DimensionValue>,
    /// Whether this series is the sum of all groups that are not listed.
    pub is_rest: bool,
    pub points: Vec<Point>,
}

#[derive(Debug, Clone)]
pub struct Point {
    pub at: Timestamp,
    pub figures: Figures,
}

#[boxed_futures]
impl App {
    pub async fn analytics_timeseries(
        &self,
        caller: &Caller,
        query: &TimeseriesQuery,
    ) -> Result<Timeseries, Refusal> {
        let borders = self.check_range(query)?;
        let (first, last) = (borders[0], borders[borders.len() - 1]);
        let ranges = match query.granularity {
            Granularity::Minute => vec![CounterRange { grain: Grain::Minute, from: first, to: last }],
            _ => counter_ranges(&borders),
        };
        let is_current = self.catch_up(caller.server_id).await?;
        let selection = CounterSelection {
            dimensions: &query.dimensions,
            filters: &query.filters,
            borders: &borders,
            ranges: &ranges,
        };
        let CounterSums { mut group_sums, has_other } = self.sum_counters(caller, &selection).await?;
        if query.dimensions.is_empty() {
            // Return a series even if nothing happened.
            group_sums.entry(Group::new()).or_default();
        }
        let series = series_of(group_sums, &borders, query);
        Ok(Timeseries { from: at_second(first), to: at_second(last), series, is_current, has_other })
    }

    /// Checks the range and returns the borders of its spans.
    fn check_range(&self, query: &TimeseriesQuery) -> Result<Vec<i64>, Refusal> {
        let default_length = match query.granularity {
            Granularity::Minute => Duration::from_hours(1),
            Granularity::Hour => Duration::from_hours(24),
            Granularity::Day => DEFAULT_RANGE,
            Granularity::Month => Duration::from_hours(365 * 24),
        };
        let (from, to) = self.range(query.from, query.to, default_length)?;
        if query.granularity == Granularity::Minute {
            if to.since(from) > MINUTES_RANGE_MAX {
                return Err(invalid_field(
                    "/from",
                    "By the minute the range may be at most 48 hours; use `hour`",
                ));
            }
            let oldest = self.inner.retention.minute_counters.map(|kept| self.inner.clock.now().minus(kept));
            if oldest.is_some_and(|oldest| from < oldest) {
                return Err(invalid_field(
                    "/from",
                    "Numbers by the minute are not kept that long; use `hour`",
                ));
            }
        }
        let borders = query.zone.borders(from, to, query.granularity, POINTS_MAX);
        borders.ok_or_else(|| {
            let text = format!(
                "The range has more than {POINTS_MAX} points; take a shorter one, or a coarser granularity"
            );
            invalid_field("/from", text)
        })
    }
}

fn series_of(group_sums: GroupSums, borders: &[i64], query: &TimeseriesQuery) -> Vec<Series> {
    let span_count = borders.len() - 1;
    let series_max = (POINTS_MAX / span_count).clamp(1, SERIES_MAX);
    let mut groups: Vec<(Group, HashMap<usize, Sums>)> = group_sums.into_iter().collect();
    let size =
        |spans: &HashMap<usize, Sums>, metric| spans.values().map(|sums| sums.counts.of(metric)).sum::<u64>();
    groups.sort_by_cached_key(|(group, spans)| {
        let sizes = [Metric::Accepted, Metric::Sent].map(|metric| std::cmp::Reverse(size(spans, metric)));
        (sizes, group.clone())
    });
    // If not all groups fit, the last series is the sum of the smallest ones.
    let rest = groups.split_off(groups.len().min(if groups.len() > series_max {
        series_max - 1
    } else {
        series_max
    }));
    let to_series = |(values, mut spans): (Group, HashMap<usize, Sums>), is_rest| {
        let point = |span: usize| Point {
            at: at_second(borders[span]),
            figures: Figures::of(spans.remove(&span).unwrap_or_default(), query.include_bots),
        };
        let points = (0..span_count).map(point).collect();
        Series { values, is_rest, points }
    };
    let mut series: Vec<Series> = groups.into_iter().map(|group| to_series(group, false)).collect();
    if !rest.is_empty() {
        let mut all: HashMap<usize, Sums> = HashMap::new();
        for (span, sums) in rest.into_iter().flat_map(|(_, spans)| spans) {
            all.entry(span).or_default().add(&sums);
        }
        series.push(to_series((vec![DimensionValue::None; query.dimensions.len()], all), true));
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query() -> TimeseriesQuery {
        TimeseriesQuery {
            from: None,
            to: None,
            granularity: Granularity::Day,
            zone: Zone::utc(),
            dimensions: vec![Dimension::Tag],
            filters: Vec::new(),
            include_bots: false,
        }
    }

    #[test]
    fn series_beyond_the_maximum_are_added_up_in_the_rest() {
        let borders: Vec<i64> = (0..=2_000).map(|day| day * 86_400).collect();
        let mut group_sums = GroupSums::new();
        for number in 1..=9_u64 {
            let mut sums = Sums::default();
            (0..number).for_each(|_| sums.counts.count(Metric::Accepted));
            let group = vec![DimensionValue::Text(format!("tag {number}"))];
            group_sums.insert(group, HashMap::from([(number as usize, sums)]));
        }
        let series = series_of(group_sums, &borders, &query());
        let names: Vec<&DimensionValue> = series.iter().map(|series| &series.values[0]).collect();
        let tag = |number: u64| DimensionValue::Text(format!("tag {number}"));
        assert_eq!(names, [&tag(9), &tag(8), &tag(7), &tag(6), &DimensionValue::None]);
        assert!(series.iter().all(|series| series.points.len() == 2_000));
        let is_rest: Vec<bool> = series.iter().map(|series| series.is_rest).collect();
        assert_eq!(is_rest, [false, false, false, false, true]);
        let total: u64 = series[4].points.iter().map(|point| point.figures.count(Metric::Accepted)).sum();
        assert_eq!(total, 1 + 2 + 3 + 4 + 5);
    }
}
