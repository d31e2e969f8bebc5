//! Reads counters and adds them up by the requested dimensions.

use std::collections::HashMap;

use postroad_store::{Breakdown, CounterRow, Dimension, Grain, Sums};

use super::dimension::{DimensionValue, Filter};
use super::invalid_field;
use super::plan::{CounterRange, span_of};
use crate::{App, Caller, Refusal};

/// Maximum number of rows read or looked up for one answer.
const ROWS_MAX: usize = 200_000;

/// Maximum number of sets (see `DimensionSets`) of the breakdown that an answer is computed from.
const SETS_MAX: usize = 50_000;

/// Values of the requested dimensions, in the order of the request.
pub(super) type Group = Vec<DimensionValue>;

/// Selection from a server's counters.
pub(super) struct CounterSelection<'a> {
    pub(super) dimensions: &'a [Dimension],
    pub(super) filters: &'a [Filter],
    /// Borders of the spans that sums are wanted for, in seconds since 1970.
    pub(super) borders: &'a [i64],
    pub(super) ranges: &'a [CounterRange],
}

/// Sums by group and span; empty spans are absent.
pub(super) type GroupSums = HashMap<Group, HashMap<usize, Sums>>;

pub(super) struct CounterSums {
    pub(super) group_sums: GroupSums,
    /// Whether tags, templates or source addresses that the query uses are counted together, because there are too
    /// many. True even if the filters exclude the combined value.
    pub(super) has_other: bool,
}

/// Sets of dimension values to add up. A set is a combination of values that is counted on its own.
struct DimensionSets {
    breakdown: Breakdown,
    /// Number of sets of this breakdown, selected or not.
    total: usize,
    /// Selected sets by number, with the group of each.
    group_of: HashMap<i64, Group>,
    has_other: bool,
}

impl DimensionSets {
    /// Numbers of the selected sets, ascending like the store's keys.
    fn numbers(&self) -> Vec<i64> {
        let mut numbers: Vec<i64> = self.group_of.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Number of look-ups needed to read only the selected sets. `None` if all sets are selected, or more than `max`
    /// look-ups would be needed; then all sets of the breakdown are read.
    fn count_look_ups(&self, grain: Grain, ranges: &[(i64, i64)], max: usize) -> Option<usize> {
        let intervals: i64 = ranges.iter().map(|(from, to)| (to - from) / grain.seconds()).sum();
        let look_ups = self.group_of.len().saturating_mul(intervals as usize);
        (self.group_of.len() < self.total && look_ups <= max).then_some(look_ups)
    }
}

/// Starts of all intervals of the grain in these ranges.
fn interval_starts(grain: Grain, ranges: &[(i64, i64)]) -> Vec<i64> {
    ranges.iter().flat_map(|(from, to)| (*from..*to).step_by(grain.seconds() as usize)).collect()
}

impl CounterSelection<'_> {
    /// Dimensions that the answer depends on.
    fn used_dimensions(&self) -> Vec<Dimension> {
        let mut dimensions = self.dimensions.to_vec();
        for filter in self.filters {
            if !dimensions.contains(&filter.dimension) {
                dimensions.push(filter.dimension);
            }
        }
        dimensions
    }
}

impl App {
    /// Reads the selected counters and adds them up.
    pub(super) async fn sum_counters(
        &self,
        caller: &Caller,
        selection: &CounterSelection<'_>,
    ) -> Result<CounterSums, Refusal> {
        let _permit = self.inner.long_reads.permit(caller.account_id).await;
        let sets = self.selected_sets(caller, selection).await?;
        let mut group_sums = GroupSums::new();
        let mut rows_left = ROWS_MAX;
        for grain in Grain::ALL {
            let of_grain = selection.ranges.iter().filter(|range| range.grain == grain);
            let ranges: Vec<(i64, i64)> = of_grain.map(|range| (range.from, range.to)).collect();
            if ranges.is_empty() || sets.group_of.is_empty() {
                continue;
            }
            let (store, kind) = (&self.inner.store, (grain, sets.breakdown));
            let rows = if let Some(look_ups) = sets.count_look_ups(grain, &ranges, rows_left) {
                rows_left -= look_ups;
                let (numbers, starts) = (sets.numbers(), interval_starts(grain, &ranges));
                store.find_counters(caller.server_id, kind, numbers, starts).await?
            } else {
                let rows = store.list_counters(caller.server_id, kind, ranges, rows_left + 1).await?;
                rows_left = rows_left.checked_sub(rows.len()).ok_or_else(too_many_rows)?;
                rows
            };
            for row in rows {
                if let Some(group) = sets.group_of.get(&row.dimensions) {
                    add(&mut group_sums, group, selection.borders, &row);
                }
            }
        }
        Ok(CounterSums { group_sums, has_other: sets.has_other })
    }

    /// Selects the sets to add up: the total if no dimension is requested or filtered by, the sets of one dimension if
    /// that is enough, and combinations of all dimensions only for two or more.
    async fn selected_sets(
        &self,
        caller: &Caller,
        selection: &CounterSelection<'_>,
    ) -> Result<DimensionSets, Refusal> {
        let dimensions = selection.used_dimensions();
        let breakdown = match dimensions[..] {
            [] => Breakdown::Total,
            [only] => only.breakdown(),
            _ if dimensions.iter().any(|dimension| dimension.breakdown().is_of_attempts()) => {
                Breakdown::FullByAttempt
            }
            _ => Breakdown::Full,
        };
        let mut sets = DimensionSets { breakdown, total: 1, group_of: HashMap::new(), has_other: false };
        if breakdown == Breakdown::Total {
            sets.group_of.insert(0, Group::new());
            return Ok(sets);
        }
        let pools = self.pool_names(selection).await?;
        let first = selection.borders.first().copied().unwrap_or(0);
        let since_day = first - first.rem_euclid(Grain::Day.seconds());
        let known =
            self.inner.store.list_dimensions(caller.server_id, breakdown, since_day, SETS_MAX).await?;
        let known = known.ok_or_else(too_many_rows)?;
        sets.total = known.len();
        for (number, set) in known {
            let value = |dimension: Dimension| DimensionValue::from_set(dimension, &set, &pools);
            sets.has_other |= dimensions.iter().any(|dimension| dimension.is_beyond_limit_in(&set));
            let passes = |filter: &Filter| filter.values.contains(&value(filter.dimension));
            if selection.filters.iter().all(passes) {
                let group = selection.dimensions.iter().map(|dimension| value(*dimension)).collect();
                sets.group_of.insert(number, group);
            }
        }
        Ok(sets)
    }

    async fn pool_names(&self, selection: &CounterSelection<'_>) -> Result<HashMap<i64, String>, Refusal> {
        if !selection.used_dimensions().contains(&Dimension::Pool) {
            return Ok(HashMap::new());
        }
        let pools = self.inner.store.list_pools().await?;
        Ok(pools.into_iter().map(|pool| (pool.id.0, pool.name)).collect())
    }
}

fn add(group_sums: &mut GroupSums, group: &Group, borders: &[i64], row: &CounterRow) {
    let Some(span) = span_of(borders, row.at) else { return };
    if !group_sums.contains_key(group) {
        group_sums.insert(group.clone(), HashMap::new());
    }
    let spans = group_sums.get_mut(group).expect("it was inserted above");
    spans.entry(span).or_default().add(&row.sums);
}

fn too_many_rows() -> Refusal {
    invalid_field(
        "/from",
        "There are too many different tags and other values in this range to add up at once; take a shorter range, or filter",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_sets_are_looked_up_without_reading_all() {
        let sets = |selected: i64, total| DimensionSets {
            breakdown: Breakdown::Tag,
            total,
            group_of: (0..selected).map(|number| (number, Group::new())).collect(),
            has_other: false,
        };
        let (hour, day) = (Grain::Hour.seconds(), Grain::Day.seconds());
        let ranges = [(0, 400 * day), (500 * day, 500 * day + 2 * hour)];
        assert_eq!(sets(1, 1_000).count_look_ups(Grain::Hour, &ranges, ROWS_MAX), Some(400 * 24 + 2));
        assert_eq!(sets(1_000, 1_000).count_look_ups(Grain::Hour, &ranges, usize::MAX), None);
        assert_eq!(sets(999, 1_000).count_look_ups(Grain::Hour, &ranges, ROWS_MAX), None);
        let starts = interval_starts(Grain::Hour, &ranges);
        assert_eq!(starts.len(), 400 * 24 + 2);
        assert_eq!(starts[400 * 24 - 1..], [400 * day - hour, 500 * day, 500 * day + hour]);
    }
}
