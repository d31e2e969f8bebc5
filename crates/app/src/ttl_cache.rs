//! Small cache of data that rarely changes, such as keys and domains. Entries live two seconds, so a change by another
//! process is seen after two seconds at most.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const TTL: Duration = Duration::from_secs(2);
/// A cache with this many entries is cleared before another is added.
const ENTRIES_MAX: usize = 10_000;

#[derive(Debug)]
pub(crate) struct TtlCache<K, V> {
    state: Mutex<CacheState<K, V>>,
}

#[derive(Debug)]
struct CacheState<K, V> {
    entries: HashMap<K, (V, Instant)>,
    /// Number of calls of `clear`.
    generation: u64,
}

/// When the read of a value for the cache began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadStart {
    at: Instant,
    generation: u64,
}

impl<K, V> Default for TtlCache<K, V> {
    fn default() -> Self {
        Self { state: Mutex::new(CacheState { entries: HashMap::new(), generation: 0 }) }
    }
}

impl<K: Hash + Eq, V: Clone> TtlCache<K, V> {
    pub(crate) fn find(&self, key: &K) -> Option<V> {
        let state = self.state.lock();
        let found = state.entries.get(key).filter(|(_, read_at)| read_at.elapsed() < TTL);
        found.map(|(value, _)| value.clone())
    }

    /// Call it before reading a value, so that its age is never underestimated.
    pub(crate) fn start_read(&self) -> ReadStart {
        ReadStart { at: Instant::now(), generation: self.state.lock().generation }
    }

    /// Stores a value. Does nothing if `clear` was called since the read began: the value may be older than the change
    /// that `clear` was called for.
    pub(crate) fn put(&self, key: K, value: V, start: ReadStart) {
        let mut state = self.state.lock();
        if start.generation != state.generation {
            return;
        }
        if state.entries.len() >= ENTRIES_MAX {
            state.entries.clear();
        }
        state.entries.insert(key, (value, start.at));
    }

    /// Removes all entries. Call it after a change in this process.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock();
        state.entries.clear();
        state.generation += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn entries_are_forgotten_after_two_seconds() {
        let cache = TtlCache::default();
        cache.put(1, "one", cache.start_read());
        assert_eq!(cache.find(&1), Some("one"));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(cache.find(&1), None);
    }

    #[test]
    fn a_value_read_before_a_change_is_not_kept_after_it() {
        let cache = TtlCache::default();
        let before = cache.start_read();
        cache.clear();
        cache.put(1, "old", before);
        assert_eq!(cache.find(&1), None);
        cache.put(1, "new", cache.start_read());
        cache.put(1, "old", before);
        assert_eq!(cache.find(&1), Some("new"));
    }
}
