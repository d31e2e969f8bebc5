//! Concurrent callers with the same key share one look-up: they wait for one task.
//!
//! The work runs as a separate task, so a caller that gives up does not cancel it for the other callers.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;

type RunningLookup<V> = Shared<BoxFuture<'static, Option<V>>>;

pub(crate) struct SharedLookup<K, V> {
    running: Arc<Mutex<HashMap<K, RunningLookup<V>>>>,
}

impl<K, V> SharedLookup<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Returns the result of the running work for `key`, or starts `work`. `None` if the work panicked or the
    /// runtime is shutting down.
    pub(crate) async fn join<F>(&self, key: K, work: impl FnOnce() -> F) -> Option<V>
    where
        F: Future<Output = V> + Send + 'static,
    {
        let lookup = {
            let mut running = self.running.lock();
            if let Some(lookup) = running.get(&key) {
                lookup.clone()
            } else {
                let work = work();
                let guard = EntryGuard { key: key.clone(), running: Arc::clone(&self.running) };
                let task = tokio::spawn(async move {
                    let _guard = guard;
                    work.await
                });
                let lookup = task.map(Result::ok).boxed().shared();
                running.insert(key, lookup.clone());
                lookup
            }
        };
        lookup.await
    }
}

impl<K, V> Default for SharedLookup<K, V> {
    fn default() -> Self {
        Self { running: Arc::default() }
    }
}

impl<K, V> fmt::Debug for SharedLookup<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLookup").finish_non_exhaustive()
    }
}

/// Removes the entry when the work is over, also after a panic.
struct EntryGuard<K: Eq + Hash, V> {
    key: K,
    running: Arc<Mutex<HashMap<K, RunningLookup<V>>>>,
}

impl<K: Eq + Hash, V> Drop for EntryGuard<K, V> {
    fn drop(&mut self) {
        self.running.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn concurrent_callers_share_the_work_and_a_later_one_starts_it_again() {
        let lookups = SharedLookup::<&str, usize>::default();
        let runs = Arc::new(AtomicUsize::new(0));
        let work = || {
            let runs = Arc::clone(&runs);
            async move { runs.fetch_add(1, Ordering::SeqCst) + 1 }
        };
        // On one thread the work does not begin before both callers wait for it.
        let both = futures_util::future::join(lookups.join("a", work), lookups.join("a", work)).await;
        assert_eq!(both, (Some(1), Some(1)));
        assert_eq!(lookups.join("a", work).await, Some(2));
    }

    #[tokio::test]
    async fn a_waiter_that_gives_up_does_not_stop_the_work() {
        let lookups = SharedLookup::<&str, u8>::default();
        let gate = Arc::new(Notify::new());
        let gate_of_work = Arc::clone(&gate);
        let mut first = Box::pin(lookups.join("a", || async move {
            gate_of_work.notified().await;
            1
        }));
        assert!(futures_util::poll!(&mut first).is_pending());
        drop(first);
        gate.notify_one();
        assert_eq!(lookups.join("a", || async { 2 }).await, Some(1));
    }

    #[tokio::test]
    async fn work_that_panics_returns_none_and_can_be_started_again() {
        let lookups = SharedLookup::<&str, u8>::default();
        assert_eq!(lookups.join("a", || async { panic!("as the test wants it") }).await, None);
        assert_eq!(lookups.join("a", || async { 2 }).await, Some(2));
    }
}
