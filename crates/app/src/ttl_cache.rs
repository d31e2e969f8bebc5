//! Small cache of accounts, servers, keys and domains. Entries live two seconds, so a change by another process
//! is seen after two seconds at most.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const LIVES: Duration = Duration::from_secs(2);
const ENTRIES_MAX: usize = 10_000;

#[derive(Debug)]
pub(crate) struct TtlCache<K, V> {
    entries: Mutex<HashMap<K, (V, Instant)>>,
}

impl<K, V> Default for TtlCache<K, V> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<K: Hash + Eq, V: Clone> TtlCache<K, V> {
    pub(crate) fn find(&self, key: &K) -> Option<V> {
        let entries = self.entries.lock();
        entries.get(key).filter(|(_, read_at)| read_at.elapsed() < LIVES).map(|(value, _)| value.clone())
    }

    /// `read_at` is the time before the value was read, so that its age is never underestimated.
    pub(crate) fn put(&self, key: K, value: V, read_at: Instant) {
        let mut entries = self.entries.lock();
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(key, (value, read_at));
    }

    pub(crate) fn clear(&self) {
        self.entries.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn entries_are_forgotten_after_two_seconds() {
        let cache = TtlCache::default();
        cache.put(1, "one", Instant::now());
        assert_eq!(cache.find(&1), Some("one"));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(cache.find(&1), None);
    }
}
