//! The warm-up of a new address: so many messages a day, a little more every day, and a stop when they are not
//! welcome. What is beyond the day's quota goes out by the shared pool.

use postroad_model::Timestamp;

const DAY_SECS: i64 = 86_400;
/// Rates of fewer messages say nothing.
const SAMPLE_MIN: u64 = 50;
const BOUNCED_PERMILLE_MAX: u64 = 40;
/// 0.08 %, in hundredths of a thousandth.
const COMPLAINED_PER_100_000_MAX: u64 = 80;

/// Messages on each day of the warm-up; after the last one there is no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmUpPlan(Vec<u32>);

impl WarmUpPlan {
    pub fn new(days: Vec<u32>) -> Self {
        Self(days)
    }

    /// 1 for the first.
    pub fn day(started_at: Timestamp, now: Timestamp) -> usize {
        // Days of the calendar (UTC), as the counts of what was sent.
        let day = |moment: Timestamp| moment.as_secs().div_euclid(DAY_SECS);
        1 + (day(now) - day(started_at)).max(0) as usize
    }

    /// `None` when the warm-up is over.
    pub fn quota(&self, started_at: Timestamp, now: Timestamp) -> Option<u32> {
        self.0.get(Self::day(started_at, now) - 1).copied()
    }
}

impl Default for WarmUpPlan {
    /// 150 on the first day, 1.4 times as many on each following, up to about 125,000.
    fn default() -> Self {
        Self((0..21).map(|day| (150.0 * 1.4_f64.powi(day)).round() as u32).collect())
    }
}

/// Why a warm-up has to pause after such a day; `None` if all is well.
pub(crate) fn pause_reason(sent: u64, bounced: u64, complained: u64) -> Option<String> {
    let tried = sent + bounced;
    if tried < SAMPLE_MIN {
        return None;
    }
    if bounced * 1_000 > tried * BOUNCED_PERMILLE_MAX {
        return Some(format!("{bounced} of {tried} messages bounced, which is more than 4 %"));
    }
    if complained * 100_000 > tried * COMPLAINED_PER_100_000_MAX {
        return Some(format!("{complained} complaints about {tried} messages, which is more than 0.08 %"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_begins_at_150_and_grows_by_two_fifths_a_day() {
        let (plan, start) = (WarmUpPlan::default(), Timestamp::from_micros(0));
        let quota = |days: u64| plan.quota(start, start.plus(std::time::Duration::from_hours(24 * days)));
        assert_eq!([quota(0), quota(1), quota(2)], [Some(150), Some(210), Some(294)]);
        assert!(quota(20) > Some(100_000));
        assert_eq!(quota(21), None);
    }

    #[test]
    fn bad_rates_pause_it_once_there_is_enough_to_judge_by() {
        assert_eq!(pause_reason(20, 20, 5), None);
        assert_eq!(pause_reason(960, 40, 0), None);
        assert!(pause_reason(959, 41, 0).unwrap().contains("4 %"));
        assert!(pause_reason(999, 1, 1).unwrap().contains("complaints"));
    }
}
