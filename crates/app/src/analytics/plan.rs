//! Chooses the counters to read for a list of spans. Where whole UTC days fit into one span, counters of days are read;
//! before and after these days, counters of hours and of quarters of an hour. Quarters serve ranges that begin or end
//! within an hour, and time zones that are not whole hours from UTC.

use postroad_store::Grain;

/// Counters of one grain in a time range, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CounterRange {
    pub(super) grain: Grain,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// Grains to choose from, the longest first.
const GRAINS: [Grain; 3] = [Grain::Day, Grain::Hour, Grain::Quarter];

/// Counters to read for the spans between `borders`, which lie on quarters of an hour.
pub(super) fn counter_ranges(borders: &[i64]) -> Vec<CounterRange> {
    let mut all = Vec::new();
    for span in borders.windows(2) {
        cover(span[0], span[1], &GRAINS, &mut all);
    }
    all
}

/// Covers the range with whole intervals of the first grain, and with finer grains before and after them.
fn cover(from: i64, to: i64, grains: &[Grain], all: &mut Vec<CounterRange>) {
    let Some((grain, finer)) = grains.split_first() else { return };
    let length = grain.seconds();
    let (first, last) = ((from + length - 1).div_euclid(length) * length, to.div_euclid(length) * length);
    if first >= last {
        return cover(from, to, finer, all);
    }
    cover(from, first, finer, all);
    match all.last_mut() {
        Some(before) if before.grain == *grain && before.to == first => before.to = last,
        _ => all.push(CounterRange { grain: *grain, from: first, to: last }),
    }
    cover(last, to, finer, all);
}

/// Index of the span that contains a time.
pub(super) fn span_of(borders: &[i64], at: i64) -> Option<usize> {
    let after = borders.partition_point(|border| *border <= at);
    (after > 0 && after < borders.len()).then(|| after - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: i64 = 86_400;

    /// Grain and number of rows of each range that `counter_ranges` chooses.
    fn grains(borders: &[i64]) -> Vec<(Grain, i64)> {
        let rows = |range: CounterRange| (range.to - range.from) / range.grain.seconds();
        counter_ranges(borders).into_iter().map(|range| (range.grain, rows(range))).collect()
    }

    fn month_from(seconds: i64) -> Vec<i64> {
        (0..=30).map(|day| day * DAY + seconds).collect()
    }

    #[test]
    fn counters_of_the_longest_grain_that_fits_are_read() {
        assert_eq!(
            counter_ranges(&month_from(0)),
            [CounterRange { grain: Grain::Day, from: 0, to: 30 * DAY }]
        );
        assert_eq!(grains(&month_from(3_600)), [(Grain::Hour, 30 * 24)]);
        // Offset by half an hour.
        let odd = grains(&month_from(1_800));
        assert_eq!(odd[..3], [(Grain::Quarter, 2), (Grain::Hour, 23), (Grain::Quarter, 4)]);
        assert_eq!(odd.iter().map(|(_, rows)| rows).sum::<i64>(), 30 * (23 + 4));
        let month = grains(&[3_600 - 900, 30 * DAY + 3_600]);
        assert_eq!(month, [(Grain::Quarter, 1), (Grain::Hour, 23), (Grain::Day, 29), (Grain::Hour, 1)]);
    }

    proptest! {
        #[test]
        fn ranges_cover_the_spans_and_no_row_crosses_a_border(mut borders in prop::collection::vec(0..20_000_i64, 2..20)) {
            borders.sort_unstable();
            borders.dedup();
            prop_assume!(borders.len() > 1);
            let borders: Vec<i64> = borders.into_iter().map(|quarter| quarter * 900).collect();
            let all = counter_ranges(&borders);
            prop_assert_eq!(all[0].from, borders[0]);
            prop_assert_eq!(all[all.len() - 1].to, borders[borders.len() - 1]);
            prop_assert!(all.windows(2).all(|pair| pair[0].to == pair[1].from));
            for range in all {
                let length = range.grain.seconds();
                prop_assert_eq!((range.from % length, range.to % length), (0, 0));
                for at in (range.from..range.to).step_by(length as usize) {
                    prop_assert_eq!(span_of(&borders, at), span_of(&borders, at + length - 1));
                }
            }
        }
    }
}
