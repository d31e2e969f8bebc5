//! Warm-up of a new address: a daily quota that grows every day, and a pause when receivers object. Messages beyond the
//! quota use the shared pool, unless the address is in it.

use postroad_model::Timestamp;
use postroad_store::{Source, SourceCounts};

/// Fewer bounces or complaints than this never pause a warm-up: one complaint about 150 messages is no reason to stop.
const COUNT_MIN: u64 = 5;
const BOUNCED_PERMILLE_MAX: u64 = 40;
/// 0.08 % of the messages.
const COMPLAINED_PER_100_000_MAX: u64 = 80;

/// Messages on each day of the warm-up to each receiver group; after the last day there is no limit. Each large
/// provider must get to know the address by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmUpPlan(Vec<u32>);

impl WarmUpPlan {
    pub fn new(days: Vec<u32>) -> Self {
        Self(days)
    }

    /// Messages that the address may send today to each receiver group; 0 while its warm-up is paused. `None` for no
    /// limit: it is not warming up, or the plan is over.
    pub fn quota(&self, source: &Source, now: Timestamp) -> Option<u32> {
        let day = source.warmup_day(now)?;
        if source.warmup_paused_reason.is_some() {
            return Some(0);
        }
        self.0.get(day as usize).copied()
    }

    /// After this many days an address is warm.
    pub fn days(&self) -> u32 {
        self.0.len() as u32
    }
}

impl Default for WarmUpPlan {
    /// 150 on the first day, 1.4 times as many on each following, up to about 125,000.
    fn default() -> Self {
        Self((0..21).map(|day| (150.0 * 1.4_f64.powi(day)).round() as u32).collect())
    }
}

/// Why a warm-up must pause after these counts; `None` if all is well.
pub(crate) fn pause_reason(counts: SourceCounts) -> Option<String> {
    let SourceCounts { sent, bounced, complained } = counts;
    let tried = sent + bounced;
    if bounced >= COUNT_MIN && bounced * 1_000 > tried * BOUNCED_PERMILLE_MAX {
        return Some(format!("{bounced} of {tried} messages bounced, which is more than 4 %"));
    }
    if complained >= COUNT_MIN && complained * 100_000 > tried * COMPLAINED_PER_100_000_MAX {
        return Some(format!("{complained} complaints about {tried} messages, which is more than 0.08 %"));
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use postroad_model::{DomainName, PoolId, SourceId};

    use super::*;

    const START: Timestamp = Timestamp::from_micros(0);

    fn warming() -> Source {
        Source {
            id: SourceId(1),
            pool_id: PoolId(1),
            address: "192.0.2.1".parse().unwrap(),
            helo: DomainName::parse("out.example").unwrap(),
            weight: 1,
            version: 1,
            created_at: START,
            updated_at: START,
            warmup_started_at: Some(START),
            warmup_paused_reason: None,
            warmup_paused_at: None,
            warmup_days_paused: 0,
            sent_today: 0,
            bounced_today: 0,
            complained_today: 0,
            today_by_provider: Vec::new(),
            warmup_counts: SourceCounts::default(),
        }
    }

    fn quota_after(source: &Source, days: u64) -> Option<u32> {
        WarmUpPlan::default().quota(source, START.plus(Duration::from_hours(24 * days)))
    }

    #[test]
    fn the_plan_begins_at_150_and_grows_by_two_fifths_a_day() {
        let source = warming();
        let first = [0, 1, 2].map(|days| quota_after(&source, days));
        assert_eq!(first, [Some(150), Some(210), Some(294)]);
        assert!(quota_after(&source, 20) > Some(100_000));
        assert_eq!(quota_after(&source, 21), None);
    }

    #[test]
    fn a_paused_warm_up_sends_nothing_even_after_the_end_of_the_plan() {
        let paused = Source { warmup_paused_reason: Some("bounces".into()), ..warming() };
        assert_eq!([0, 20, 21, 400].map(|days| quota_after(&paused, days)), [Some(0); 4]);
    }

    #[test]
    fn days_of_a_pause_are_not_days_of_the_plan() {
        let resumed = Source { warmup_days_paused: 30, ..warming() };
        assert_eq!([30, 31].map(|days| quota_after(&resumed, days)), [Some(150), Some(210)]);
        assert_eq!(quota_after(&resumed, 51), None);
    }

    #[test]
    fn a_warm_up_pauses_only_after_a_minimum_count_of_bounces_or_complaints() {
        let reason = |sent, bounced, complained| pause_reason(SourceCounts { sent, bounced, complained });
        assert_eq!(reason(149, 0, 1), None, "one complaint in 150");
        assert_eq!(reason(150, 0, 4), None);
        assert!(reason(150, 0, 5).unwrap().contains("complaints"));
        assert_eq!(reason(5_000, 0, 4), None);
        assert!(reason(5_000, 0, 5).unwrap().contains("complaints"));
        assert_eq!(reason(10_000, 0, 8), None, "0.08 % is not more than 0.08 %");
        assert_eq!(reason(20, 4, 0), None);
        assert!(reason(20, 5, 0).unwrap().contains("4 %"));
        assert_eq!(reason(96, 4, 0), None);
        assert!(reason(95, 5, 0).unwrap().contains("4 %"));
        assert_eq!(reason(960, 40, 0), None);
        assert!(reason(959, 41, 0).unwrap().contains("4 %"));
    }
}
