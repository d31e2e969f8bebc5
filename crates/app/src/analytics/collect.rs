//! Reading counters and adding them up by what is asked for.

use std::collections::HashMap;

use postroad_store::{CounterRow, Grain, Sums};

use super::dimension::{Dimension, DimensionValue, Filter};
use super::plan::{Stretch, span_of};
use super::wrong;
use crate::{App, Caller, Refusal};

/// Rows that are added up for one answer at most.
const ROWS_MAX: usize = 200_000;

/// The values of the asked-for dimensions, in their order.
pub(super) type Group = Vec<DimensionValue>;

/// What is wanted of a server's counters.
pub(super) struct Wanted<'a> {
    pub(super) dimensions: &'a [Dimension],
    pub(super) filters: &'a [Filter],
    pub(super) borders: &'a [i64],
    pub(super) stretches: &'a [Stretch],
}

/// Sums by group and span; spans without any are absent.
pub(super) type Collected = HashMap<Group, HashMap<usize, Sums>>;

impl App {
    pub(super) async fn collect(&self, caller: &Caller, wanted: &Wanted<'_>) -> Result<Collected, Refusal> {
        // Never closed while the app lives.
        let _permit = self.inner.analytics_reads.acquire().await;
        let has_minutes = wanted.stretches.iter().any(|stretch| stretch.grain == Grain::Minute);
        if wanted.dimensions.is_empty() && wanted.filters.is_empty() && !has_minutes {
            return self.collect_totals(caller, wanted).await;
        }
        let pools = self.pool_names(wanted).await?;
        let first = wanted.borders.first().copied().unwrap_or(0);
        let since_day = first - first.rem_euclid(Grain::Day.seconds());
        let mut group_of: HashMap<i64, Group> = HashMap::new();
        for (number, set) in self.inner.store.list_dimensions(caller.server_id, since_day).await? {
            let value = |dimension: Dimension| dimension.value_in(&set, &pools);
            let passes = |filter: &Filter| filter.values.contains(&value(filter.dimension));
            if wanted.filters.iter().all(passes) {
                group_of
                    .insert(number, wanted.dimensions.iter().map(|dimension| value(*dimension)).collect());
            }
        }
        let numbers: Vec<i64> = group_of.keys().copied().collect();
        let mut collected = Collected::new();
        let mut room = ROWS_MAX;
        for stretch in wanted.stretches {
            let Stretch { grain, from, to } = *stretch;
            let store = &self.inner.store;
            let rows =
                store.list_counters(caller.server_id, grain, numbers.clone(), (from, to), room + 1).await?;
            room = room.checked_sub(rows.len()).ok_or_else(too_much)?;
            for row in rows {
                if let Some(group) = group_of.get(&row.dimensions) {
                    add(&mut collected, group, wanted.borders, &row);
                }
            }
        }
        Ok(collected)
    }

    async fn collect_totals(&self, caller: &Caller, wanted: &Wanted<'_>) -> Result<Collected, Refusal> {
        let mut collected = Collected::new();
        for Stretch { grain, from, to } in wanted.stretches {
            for row in self.inner.store.list_totals(caller.server_id, *grain, *from, *to).await? {
                add(&mut collected, &Group::new(), wanted.borders, &row);
            }
        }
        Ok(collected)
    }

    async fn pool_names(&self, wanted: &Wanted<'_>) -> Result<HashMap<i64, String>, Refusal> {
        let filtered = wanted.filters.iter().map(|filter| filter.dimension);
        if !wanted.dimensions.iter().copied().chain(filtered).any(|asked| asked == Dimension::IpPool) {
            return Ok(HashMap::new());
        }
        let pools = self.inner.store.list_pools().await?;
        Ok(pools.into_iter().map(|pool| (pool.id.0, pool.name)).collect())
    }
}

fn add(collected: &mut Collected, group: &Group, borders: &[i64], row: &CounterRow) {
    let Some(span) = span_of(borders, row.at) else { return };
    if !collected.contains_key(group) {
        collected.insert(group.clone(), HashMap::new());
    }
    let spans = collected.get_mut(group).expect("it was put there");
    spans.entry(span).or_default().add(&row.sums);
}

pub(super) fn too_much() -> Refusal {
    wrong(
        "/from",
        "There are too many different tags and other values in this range to add up at once; take a shorter range, or filter",
    )
}
