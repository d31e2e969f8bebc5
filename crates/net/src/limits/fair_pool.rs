//! Pool of permits that no single tenant can exhaust: each has its own share.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// With fewer known tenants, idle entries are not removed.
const SWEEP_TENANTS_MIN: usize = 64;

/// Permits for all tenants. One tenant may hold at most `share_max` of them.
#[derive(Debug)]
pub struct FairPool<T> {
    all: Arc<Semaphore>,
    share_max: usize,
    wait_max: Duration,
    /// Tenants that hold or wait for permits; idle entries are removed occasionally.
    shares: Mutex<Shares<T>>,
}

#[derive(Debug)]
struct Shares<T> {
    of_tenants: HashMap<T, Weak<Semaphore>>,
    /// Number of entries at which idle ones are removed.
    sweep_entries: usize,
}

/// Permits of a tenant; dropping it frees them.
#[derive(Debug, Default)]
pub struct FairPermit {
    /// Equal numbers of permits from the tenant's share and from the whole pool.
    permits: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl<T: Copy + Eq + Hash> FairPool<T> {
    pub fn new(permits: usize, share_max: usize, wait_max: Duration) -> Self {
        let permits = permits.clamp(1, (u32::MAX as usize).min(Semaphore::MAX_PERMITS));
        let share_max = share_max.clamp(1, permits);
        let shares = Shares { of_tenants: HashMap::new(), sweep_entries: 0 };
        Self { all: Arc::new(Semaphore::new(permits)), share_max, wait_max, shares: Mutex::new(shares) }
    }

    /// Maximum number of permits that one tenant can hold.
    pub fn share_max(&self) -> usize {
        self.share_max
    }

    /// Waits at most `wait_max` for permits; `None` if they did not become free in time. A number above `share_max`
    /// takes `share_max` permits.
    pub async fn acquire(&self, tenant: T, permits: usize) -> Option<FairPermit> {
        timeout(self.wait_max, self.acquire_without_timeout(tenant, permits)).await.ok()
    }

    /// Like `acquire`, but waits however long it takes. Only for work that never waits while it holds the permits.
    pub async fn acquire_without_timeout(&self, tenant: T, permits: usize) -> FairPermit {
        if permits == 0 {
            return FairPermit::default();
        }
        let permits =
            u32::try_from(permits.min(self.share_max)).expect("a pool has at most u32::MAX permits");
        let own = self.share_of(tenant);
        // Take the tenant's own share first: waiting for it blocks nobody else.
        let own = own.acquire_many_owned(permits).await.expect("nobody closes a share");
        let all = Arc::clone(&self.all).acquire_many_owned(permits).await.expect("nobody closes the pool");
        FairPermit { permits: Some((own, all)) }
    }

    /// A permit if one is free now, in the pool and in the tenant's share.
    pub fn try_acquire(&self, tenant: T) -> Option<FairPermit> {
        let own = self.share_of(tenant).try_acquire_owned().ok()?;
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(FairPermit { permits: Some((own, all)) })
    }

    fn share_of(&self, tenant: T) -> Arc<Semaphore> {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.of_tenants.get(&tenant).and_then(Weak::upgrade) {
            return share;
        }
        if shares.of_tenants.len() >= shares.sweep_entries.max(SWEEP_TENANTS_MIN) {
            shares.of_tenants.retain(|_, share| share.strong_count() > 0);
            shares.sweep_entries = shares.of_tenants.len() * 2;
        }
        let share = Arc::new(Semaphore::new(self.share_max));
        shares.of_tenants.insert(tenant, Arc::downgrade(&share));
        share
    }

    /// Number of permits that nobody holds.
    pub fn free(&self) -> usize {
        self.all.available_permits()
    }
}

impl FairPermit {
    pub fn count(&self) -> usize {
        self.permits.as_ref().map_or(0, |(own, _)| own.num_permits())
    }

    /// Takes over the permits of `more`, which belongs to the same tenant and pool.
    pub fn add(&mut self, more: Self) {
        match (&mut self.permits, more.permits) {
            (Some((own, all)), Some((more_own, more_all))) => {
                own.merge(more_own);
                all.merge(more_all);
            }
            (permits @ None, more) => *permits = more,
            (Some(_), None) => {}
        }
    }

    /// Splits off all permits above `count`.
    #[must_use]
    pub fn split_above(&mut self, count: usize) -> Self {
        let excess = self.count().saturating_sub(count);
        let Some((own, all)) = self.permits.as_mut().filter(|_| excess > 0) else { return Self::default() };
        Self { permits: own.split(excess).zip(all.split(excess)) }
    }
}

#[cfg(test)]
mod tests {
    use postroad_model::ServerId;

    use super::*;

    const WAIT: Duration = Duration::from_secs(10);
    const ONE: ServerId = ServerId(1);
    const OTHER: ServerId = ServerId(2);

    #[tokio::test(start_paused = true)]
    async fn a_server_that_holds_its_share_leaves_the_rest_to_others() {
        let pool = FairPool::new(8, 4, WAIT);
        let permits = pool.acquire(ONE, 3).await.unwrap();
        assert!(pool.acquire(ONE, 2).await.is_none(), "four is the share");
        let other = pool.acquire(OTHER, 100).await.unwrap();
        assert_eq!((other.count(), pool.free()), (4, 1));
        drop(permits);
        assert_eq!(pool.acquire(ONE, 4).await.unwrap().count(), 4);
        drop(other);
        assert_eq!(pool.free(), 8);
    }

    #[test]
    fn try_acquire_keeps_to_the_share_and_to_the_whole_pool() {
        let pool = FairPool::new(3, 2, WAIT);
        let permits = [pool.try_acquire(ONE).unwrap(), pool.try_acquire(ONE).unwrap()];
        assert!(pool.try_acquire(ONE).is_none());
        let other = pool.try_acquire(OTHER).unwrap();
        assert!(pool.try_acquire(ServerId(3)).is_none());
        drop(permits);
        assert!(pool.try_acquire(ONE).is_some() && pool.try_acquire(ServerId(3)).is_some());
        drop(other);
        assert_eq!(pool.free(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn permits_are_added_and_split() {
        let pool = FairPool::new(8, 8, WAIT);
        let mut permits = pool.acquire(ONE, 2).await.unwrap();
        permits.add(pool.acquire(ONE, 3).await.unwrap());
        let excess = permits.split_above(1);
        assert_eq!((permits.count(), excess.count(), pool.free()), (1, 4, 3));
        drop(excess);
        assert_eq!((permits.split_above(1).count(), pool.free()), (0, 7));
    }

    #[tokio::test]
    async fn servers_that_hold_nothing_are_forgotten() {
        let pool = FairPool::new(8, 4, WAIT);
        for server in 0..10_000 {
            drop(pool.acquire(ServerId(server), 1).await.unwrap());
        }
        assert!(pool.shares.lock().of_tenants.len() <= 2 * SWEEP_TENANTS_MIN);
    }
}
