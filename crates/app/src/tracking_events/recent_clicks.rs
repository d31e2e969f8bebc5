//! Detection of scanners, which follow many links of a message at once. A click is judged together with the clicks
//! shortly before and after it, so the click is stored a little later.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use postroad_model::{MessageId, ServerId, Timestamp};

/// How long a click waits for other clicks in the same message.
pub const CLICK_WINDOW: Duration = Duration::from_secs(2);
/// Clicks on this many different links within the window come from a scanner, not from a person.
const BURST_LINKS_MIN: usize = 3;
/// Maximum number of clicks remembered per message.
const CLICKS_PER_MESSAGE_MAX: usize = 32;

/// Recent clicks.
#[derive(Debug, Default)]
pub struct RecentClicks {
    /// Time and link of each click.
    recent: HashMap<(ServerId, MessageId), Vec<(Timestamp, u64)>>,
    /// When old clicks were last forgotten.
    forgotten_at: Option<Timestamp>,
}

impl RecentClicks {
    /// Records a click.
    pub fn record(&mut self, server_id: ServerId, message_id: MessageId, target: &str, at: Timestamp) {
        let mut hasher = DefaultHasher::new();
        target.hash(&mut hasher);
        let clicks = self.recent.entry((server_id, message_id)).or_default();
        if clicks.len() < CLICKS_PER_MESSAGE_MAX {
            clicks.push((at, hasher.finish()));
        }
    }

    /// Whether a click at that time was part of a burst.
    pub fn is_burst(&self, server_id: ServerId, message_id: MessageId, at: Timestamp) -> bool {
        let Some(clicks) = self.recent.get(&(server_id, message_id)) else { return false };
        let is_near = |other: Timestamp| at.since(other).max(other.since(at)) <= CLICK_WINDOW;
        let mut links: Vec<u64> =
            clicks.iter().filter(|(other, _)| is_near(*other)).map(|(_, link)| *link).collect();
        links.sort_unstable();
        links.dedup();
        links.len() >= BURST_LINKS_MIN
    }

    /// Forgets clicks that are too old to matter for waiting clicks; `oldest_waiting` is the time of the oldest waiting
    /// click. Does nothing within `CLICK_WINDOW` of its last run, because each run looks at all clicks.
    pub fn forget(&mut self, now: Timestamp, oldest_waiting: Option<Timestamp>) {
        let distance = |at: Timestamp| now.since(at).max(at.since(now));
        if self.forgotten_at.is_some_and(|at| distance(at) < CLICK_WINDOW) {
            return;
        }
        self.forgotten_at = Some(now);
        let is_kept = |at: Timestamp| {
            let matters = oldest_waiting.is_some_and(|oldest| oldest.since(at) <= CLICK_WINDOW);
            matters || distance(at) <= CLICK_WINDOW * 4
        };
        self.recent.retain(|_, clicks| {
            clicks.retain(|(at, _)| is_kept(*at));
            !clicks.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(1_000_000_000 + millis * 1_000)
    }

    fn recent_clicks(clicks: &[(&str, i64)]) -> RecentClicks {
        let mut recent_clicks = RecentClicks::default();
        for (target, millis) in clicks {
            recent_clicks.record(ServerId(1), MessageId(2), target, at(*millis));
        }
        recent_clicks
    }

    fn is_burst(recent_clicks: &RecentClicks, millis: i64) -> bool {
        recent_clicks.is_burst(ServerId(1), MessageId(2), at(millis))
    }

    #[test]
    fn three_links_within_two_seconds_are_a_burst_and_each_belongs_to_it() {
        let found = recent_clicks(&[("a", 0), ("b", 300), ("c", 900), ("d", 5_000)]);
        assert!([0, 300, 900].into_iter().all(|millis| is_burst(&found, millis)));
        assert!(!is_burst(&found, 5_000));
    }

    #[test]
    fn two_links_or_the_same_link_often_are_a_person() {
        assert!(!is_burst(&recent_clicks(&[("a", 0), ("b", 100)]), 0));
        assert!(!is_burst(&recent_clicks(&[("a", 0), ("a", 100), ("a", 200), ("b", 300)]), 100));
        assert!(!is_burst(&recent_clicks(&[("a", 0), ("b", 1_500), ("c", 3_100)]), 0));
    }

    #[test]
    fn other_messages_do_not_count_and_old_clicks_are_forgotten() {
        let mut found = recent_clicks(&[("a", 0), ("b", 0), ("c", 0)]);
        assert!(!found.is_burst(ServerId(1), MessageId(3), at(0)));
        assert!(!found.is_burst(ServerId(2), MessageId(2), at(0)));
        found.forget(at(9_000), Some(at(2_000)));
        assert!(is_burst(&found, 0), "a click that waits since then may belong to the burst");
        found.forget(at(12_000), Some(at(2_001)));
        assert!(!is_burst(&found, 0) && found.recent.is_empty());
    }
}
