//! Counts of each day of a block of 32 days, in one value. There are many recipient domains: one row per day would make
//! queries too slow.

use std::collections::BTreeMap;

use super::counts::Counts;
use super::grain::Grain;
use crate::error::StoreError;
use crate::varint;

/// Number of days (UTC) stored together.
const DAYS_PER_BLOCK: i64 = 32;

/// Counts by the index of the day in its block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DayCounts(BTreeMap<u64, Counts>);

/// Start of the block that contains a time, in seconds since 1970.
pub(crate) fn block_start(seconds: i64) -> i64 {
    seconds - seconds.rem_euclid(block_seconds())
}

const fn block_seconds() -> i64 {
    DAYS_PER_BLOCK * Grain::Day.seconds()
}

impl DayCounts {
    /// Adds the counts of one day; `seconds` is any time of that day.
    pub(crate) fn add(&mut self, seconds: i64, counts: &Counts) {
        let day = seconds.rem_euclid(block_seconds()) / Grain::Day.seconds();
        self.0.entry(day as u64).or_default().add(counts);
    }

    /// Each day is encoded as its index, the length of its encoded counts in bytes, and these counts.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (day, counts) in &self.0 {
            let counts = counts.encode();
            varint::write(*day, &mut bytes);
            varint::write(counts.len() as u64, &mut bytes);
            bytes.extend(counts);
        }
        bytes
    }

    pub(crate) fn add_encoded(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        each_day(bytes, |day, counts| self.0.entry(day).or_default().add_encoded(counts))
    }
}

/// Adds to `sum` the counts of the block's days that begin at `from` or later and before `to`. `block` is the start of
/// the block.
pub(crate) fn add_days(
    sum: &mut Counts,
    bytes: &[u8],
    block: i64,
    (from, to): (i64, i64),
) -> Result<(), StoreError> {
    each_day(bytes, |day, counts| {
        let at = block.saturating_add((day as i64).saturating_mul(Grain::Day.seconds()));
        if (from..to).contains(&at) { sum.add_encoded(counts) } else { Ok(()) }
    })
}

fn each_day(
    mut bytes: &[u8],
    mut visit: impl FnMut(u64, &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    while !bytes.is_empty() {
        let day = varint::read(&mut bytes)?;
        let length = varint::read(&mut bytes)? as usize;
        let Some((counts, rest)) = bytes.split_at_checked(length) else {
            return Err(StoreError::Internal("the counts of a day are cut off".into()));
        };
        visit(day, counts)?;
        bytes = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::Metric;

    const DAY: i64 = 86_400;

    fn sent(times: u64) -> Counts {
        let mut counts = Counts::default();
        (0..times).for_each(|_| counts.count(Metric::Sent));
        counts
    }

    #[test]
    fn days_of_a_block_are_kept_apart_and_add_up() {
        let block = block_start(20_000 * DAY);
        let mut days = DayCounts::default();
        for (day, times) in [(0, 1), (5, 200), (31, 3)] {
            days.add(block + day * DAY + 7, &sent(times));
        }
        let mut twice = days.clone();
        twice.add_encoded(&days.encode()).unwrap();
        let sum = |from: i64, to: i64| {
            let range = (block + from * DAY, block + to * DAY);
            let mut sum = Counts::default();
            add_days(&mut sum, &twice.encode(), block, range).unwrap();
            sum.of(Metric::Sent)
        };
        assert_eq!((sum(-9, 99), sum(1, 31), sum(5, 6), sum(6, 31), sum(31, 32)), (408, 400, 400, 0, 6));
        assert_eq!(block_start(block + 32 * DAY - 1), block);
    }

    #[test]
    fn truncated_data_is_an_error() {
        let mut days = DayCounts::default();
        days.add(0, &sent(1_000));
        let bytes = days.encode();
        assert!(DayCounts::default().add_encoded(&bytes[..bytes.len() - 1]).is_err());
    }
}
