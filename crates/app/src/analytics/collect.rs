//! Reading counters and adding them up by what is asked for.

use std::collections::HashMap;

use postroad_store::{CounterRow, Grain, Shape, Sums};

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

pub(super) struct Found {
    pub(super) collected: Collected,
    /// Whether what was asked for has tags or templates among it that are counted together.
    pub(super) has_surplus: bool,
}

impl Wanted<'_> {
    /// The dimensions that the answer depends on.
    fn asked(&self) -> Vec<Dimension> {
        let mut asked = self.dimensions.to_vec();
        for filter in self.filters {
            if !asked.contains(&filter.dimension) {
                asked.push(filter.dimension);
            }
        }
        asked
    }
}

impl App {
    pub(super) async fn collect(&self, caller: &Caller, wanted: &Wanted<'_>) -> Result<Found, Refusal> {
        let _place = self.inner.analytics_reads.place(caller.server_id).await;
        let (group_of, has_surplus) = self.wanted_sets(caller, wanted).await?;
        let numbers: Vec<i64> = group_of.keys().copied().collect();
        let mut collected = Collected::new();
        let mut room = ROWS_MAX;
        for grain in Grain::ALL {
            let of_grain = wanted.stretches.iter().filter(|stretch| stretch.grain == grain);
            let ranges: Vec<(i64, i64)> = of_grain.map(|stretch| (stretch.from, stretch.to)).collect();
            if ranges.is_empty() || numbers.is_empty() {
                continue;
            }
            let store = &self.inner.store;
            let rows =
                store.list_counters(caller.server_id, grain, numbers.clone(), ranges, room + 1).await?;
            room = room.checked_sub(rows.len()).ok_or_else(too_much)?;
            for row in rows {
                if let Some(group) = group_of.get(&row.dimensions) {
                    add(&mut collected, group, wanted.borders, &row);
                }
            }
        }
        Ok(Found { collected, has_surplus })
    }

    /// The numbers of the sets to add up, and what group each belongs to: the total if nothing is told apart, those of one
    /// dimension where that is enough, and all combinations only where two and more are asked for. And whether there are
    /// some that are counted together.
    async fn wanted_sets(
        &self,
        caller: &Caller,
        wanted: &Wanted<'_>,
    ) -> Result<(HashMap<i64, Group>, bool), Refusal> {
        let asked = wanted.asked();
        let shape = match asked[..] {
            [] => return Ok((HashMap::from([(0, Group::new())]), false)),
            [only] => only.shape(),
            _ => Shape::Full,
        };
        let pools = self.pool_names(wanted).await?;
        let first = wanted.borders.first().copied().unwrap_or(0);
        let since_day = first - first.rem_euclid(Grain::Day.seconds());
        let mut group_of: HashMap<i64, Group> = HashMap::new();
        let mut has_surplus = false;
        for (number, set) in self.inner.store.list_dimensions(caller.server_id, shape, since_day).await? {
            let value = |dimension: Dimension| dimension.value_in(&set, &pools);
            has_surplus |= asked.iter().any(|dimension| dimension.is_surplus_in(&set));
            let passes = |filter: &Filter| filter.values.contains(&value(filter.dimension));
            if wanted.filters.iter().all(passes) {
                group_of
                    .insert(number, wanted.dimensions.iter().map(|dimension| value(*dimension)).collect());
            }
        }
        Ok((group_of, has_surplus))
    }

    async fn pool_names(&self, wanted: &Wanted<'_>) -> Result<HashMap<i64, String>, Refusal> {
        if !wanted.asked().contains(&Dimension::IpPool) {
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
