//! Which counters to read for a row of spans: whole days (UTC) where they fit into one span, quarters of an hour for
//! the rest.

use postroad_store::Grain;

/// Counters of one grain from one moment to another, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) grain: Grain,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// Borders lie on quarters of an hour.
pub(super) fn stretches(borders: &[i64]) -> Vec<Stretch> {
    let mut all: Vec<Stretch> = Vec::new();
    let mut push = |grain, from, to| {
        if from >= to {
            return;
        }
        match all.last_mut() {
            Some(last) if last.grain == grain && last.to == from => last.to = to,
            _ => all.push(Stretch { grain, from, to }),
        }
    };
    let day = Grain::Day.seconds();
    for span in borders.windows(2) {
        let (from, to) = (span[0], span[1]);
        let (first_day, last_day) = ((from + day - 1).div_euclid(day) * day, to.div_euclid(day) * day);
        if first_day < last_day {
            push(Grain::Quarter, from, first_day);
            push(Grain::Day, first_day, last_day);
            push(Grain::Quarter, last_day, to);
        } else {
            push(Grain::Quarter, from, to);
        }
    }
    all
}

/// The span that a moment is in.
pub(super) fn span_of(borders: &[i64], at: i64) -> Option<usize> {
    let after = borders.partition_point(|border| *border <= at);
    (after > 0 && after < borders.len()).then(|| after - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn days_in_utc_are_read_as_days_and_others_as_quarters() {
        let utc: Vec<i64> = (0..=30).map(|day| day * DAY).collect();
        assert_eq!(stretches(&utc), [Stretch { grain: Grain::Day, from: 0, to: 30 * DAY }]);
        let shifted: Vec<i64> = (0..=30).map(|day| day * DAY + 3_600).collect();
        assert_eq!(
            stretches(&shifted),
            [Stretch { grain: Grain::Quarter, from: 3_600, to: 30 * DAY + 3_600 }]
        );
        let month = stretches(&[3_600, 30 * DAY + 3_600]);
        let grains: Vec<Grain> = month.iter().map(|stretch| stretch.grain).collect();
        assert_eq!(grains, [Grain::Quarter, Grain::Day, Grain::Quarter]);
    }

    proptest! {
        #[test]
        fn stretches_cover_the_spans_and_no_row_crosses_a_border(mut borders in prop::collection::vec(0..20_000_i64, 2..20)) {
            borders.sort_unstable();
            borders.dedup();
            prop_assume!(borders.len() > 1);
            let borders: Vec<i64> = borders.into_iter().map(|quarter| quarter * 900).collect();
            let all = stretches(&borders);
            prop_assert_eq!(all[0].from, borders[0]);
            prop_assert_eq!(all[all.len() - 1].to, borders[borders.len() - 1]);
            prop_assert!(all.windows(2).all(|pair| pair[0].to == pair[1].from));
            for stretch in all {
                let length = stretch.grain.seconds();
                prop_assert_eq!((stretch.from % length, stretch.to % length), (0, 0));
                for at in (stretch.from..stretch.to).step_by(length as usize) {
                    prop_assert_eq!(span_of(&borders, at), span_of(&borders, at + length - 1));
                }
            }
        }
    }
}
