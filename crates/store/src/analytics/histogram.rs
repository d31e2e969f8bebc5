//! Latency histograms: sixteen steps per doubling, from a millisecond to a week. Adding two histograms is exact, and a
//! percentile is off by at most 3.2 %.

use std::time::Duration;

use crate::error::StoreError;
use crate::varint;

/// Steps per doubling, as a power of two: 2⁴ = 16.
const STEP_BITS: u32 = 4;
const STEPS_PER_DOUBLING: u64 = 1 << STEP_BITS;
/// A week; longer times count as a week.
const MILLIS_MAX: u64 = 7 * 24 * 3_600 * 1_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Steps of the scale and their counts, in order, without zeros.
    counts: Vec<(u16, u64)>,
}

impl Histogram {
    pub fn record(&mut self, duration: Duration) {
        self.add_count(step_of(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)), 1);
    }

    pub fn merge(&mut self, other: &Self) {
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
            return;
        }
        other.counts.iter().for_each(|(step, count)| self.add_count(*step, *count));
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// The time that `share` (0 to 1) of all recorded times do not exceed. `None` if no time was recorded.
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        let rank = ((self.total() as f64 * share).ceil() as u64).max(1);
        let mut passed = 0;
        let reached = self.counts.iter().find(|(_, count)| {
            passed += count;
            passed >= rank
        });
        reached.or(self.counts.last()).map(|(step, _)| middle_of(*step))
    }

    fn add_count(&mut self, step: u16, count: u64) {
        match self.counts.binary_search_by_key(&step, |(step, _)| *step) {
            Ok(at) => self.counts[at].1 += count,
            Err(at) => self.counts.insert(at, (step, count)),
        }
    }

    /// Encodes each step as its distance from the previous step, followed by its count.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 * self.counts.len());
        let mut previous = 0;
        for (step, count) in &self.counts {
            varint::write(u64::from(step - previous), &mut bytes);
            varint::write(*count, &mut bytes);
            previous = *step;
        }
        bytes
    }

    pub(crate) fn add_encoded(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        let mut step = 0;
        while !bytes.is_empty() {
            step = (step + varint::read(&mut bytes)?).min(u64::from(step_of(MILLIS_MAX)));
            let count = varint::read(&mut bytes)?;
            self.add_count(step as u16, count);
        }
        Ok(())
    }
}

fn step_of(millis: u64) -> u16 {
    let millis = millis.min(MILLIS_MAX);
    if millis < STEPS_PER_DOUBLING {
        return millis as u16;
    }
    let doublings = millis.ilog2() - STEP_BITS;
    let step = (millis >> doublings) & (STEPS_PER_DOUBLING - 1);
    (STEPS_PER_DOUBLING + u64::from(doublings) * STEPS_PER_DOUBLING + step) as u16
}

fn middle_of(step: u16) -> Duration {
    let step = u64::from(step);
    if step < STEPS_PER_DOUBLING {
        return Duration::from_millis(step);
    }
    let (doublings, step) = ((step - STEPS_PER_DOUBLING) / STEPS_PER_DOUBLING, step % STEPS_PER_DOUBLING);
    let (lowest, width) = ((STEPS_PER_DOUBLING + step) << doublings, 1_u64 << doublings);
    Duration::from_micros(lowest * 1_000 + (width - 1) * 500)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(millis: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for millis in millis {
            histogram.record(Duration::from_millis(*millis));
        }
        histogram
    }

    #[test]
    fn an_empty_histogram_has_no_percentile_and_longer_times_count_as_a_week() {
        assert_eq!(Histogram::default().percentile(0.5), None);
        let week = of(&[u64::MAX]).percentile(0.5).unwrap().as_secs_f64();
        assert!((week / 604_800.0 - 1.0).abs() < 0.032, "{week}");
    }

    proptest! {
        #[test]
        fn percentiles_are_near_the_exact_ones(mut millis in prop::collection::vec(1..MILLIS_MAX, 1..200), share in 0.01..1.0_f64) {
            let found = of(&millis).percentile(share).unwrap().as_secs_f64() * 1e3;
            millis.sort_unstable();
            let rank = ((millis.len() as f64 * share).ceil() as usize).max(1);
            let exact = millis[rank - 1] as f64;
            prop_assert!((found / exact - 1.0).abs() <= 0.032, "{found} instead of {exact}");
        }

        #[test]
        fn parts_add_up_to_the_whole_in_any_order(a in prop::collection::vec(0..MILLIS_MAX, 0..100), b in prop::collection::vec(0..MILLIS_MAX, 0..100)) {
            let whole = of(&[a.clone(), b.clone()].concat());
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(&merged, &whole);
            let mut stored = of(&b);
            stored.add_encoded(&of(&a).encode()).unwrap();
            prop_assert_eq!(&stored, &whole);
            prop_assert_eq!(stored.total() as usize, a.len() + b.len());
        }
    }
}
