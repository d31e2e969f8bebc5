//! Permits by key: so many in all, and so many for one key.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

#[derive(Debug)]
pub(super) struct KeyedPermits {
    taken: Mutex<HashMap<i64, usize>>,
    max: usize,
    of_key_max: usize,
}

/// Given back when dropped.
#[derive(Debug)]
pub(super) struct KeyedPermit {
    permits: Arc<KeyedPermits>,
    key: i64,
}

impl KeyedPermits {
    pub(super) fn new(max: usize, of_key_max: usize) -> Arc<Self> {
        Arc::new(Self { taken: Mutex::default(), max, of_key_max })
    }

    pub(super) fn try_acquire(self: &Arc<Self>, key: i64) -> Option<KeyedPermit> {
        let mut taken = self.taken.lock();
        let (all, own) = (taken.values().sum::<usize>(), taken.get(&key).copied().unwrap_or_default());
        if all >= self.max || own >= self.of_key_max {
            return None;
        }
        taken.insert(key, own + 1);
        Some(KeyedPermit { permits: Arc::clone(self), key })
    }
}

impl Drop for KeyedPermit {
    fn drop(&mut self) {
        let mut taken = self.permits.taken.lock();
        if let Some(own) = taken.get_mut(&self.key) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gets_its_share_and_all_together_no_more_than_there_are() {
        let permits = KeyedPermits::new(3, 2);
        let held = [permits.try_acquire(1).unwrap(), permits.try_acquire(1).unwrap()];
        assert!(permits.try_acquire(1).is_none());
        let other = permits.try_acquire(2).unwrap();
        assert!(permits.try_acquire(3).is_none());
        drop(held);
        assert!(permits.try_acquire(1).is_some() && permits.try_acquire(3).is_some());
        drop(other);
        assert!(permits.taken.lock().is_empty());
    }
}
