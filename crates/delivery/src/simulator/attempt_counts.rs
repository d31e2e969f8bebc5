//! Attempts per message, for recipients that refuse the first ones. Bounded: the oldest counts are dropped.

use std::collections::{HashMap, VecDeque};

const REMEMBERED_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct AttemptCounts {
    counts: HashMap<String, u32>,
    /// Oldest first.
    order: VecDeque<String>,
}

impl AttemptCounts {
    /// Counts an attempt of the message `key`, and returns the number of attempts so far.
    pub(super) fn count(&mut self, key: String) -> u32 {
        if let Some(count) = self.counts.get_mut(&key) {
            *count = count.saturating_add(1);
            return *count;
        }
        if self.order.len() >= REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.counts.insert(key, 1);
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_and_old_ones_forgotten() {
        let mut attempts = AttemptCounts::default();
        assert_eq!((attempts.count("a".to_owned()), attempts.count("a".to_owned())), (1, 2));
        for number in 0..REMEMBERED_MAX {
            attempts.count(number.to_string());
        }
        assert_eq!(attempts.count("a".to_owned()), 1);
        assert!(attempts.counts.len() <= REMEMBERED_MAX && attempts.order.len() <= REMEMBERED_MAX);
    }
}
