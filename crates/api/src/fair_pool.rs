//! Pool of permits that no single tenant can exhaust: each has its own share.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::tenant::Tenant;

/// Below this number of known servers, idle entries are not removed.
const SWEEP_SERVERS_MIN: usize = 64;

/// Permits for all servers, of which one server may hold `share_max`.
#[derive(Debug)]
pub(crate) struct FairPool {
    all: Arc<Semaphore>,
    share_max: usize,
    wait_max: Duration,
    /// Servers that hold or wait for permits; idle entries are removed occasionally.
    shares: Mutex<Shares>,
}

#[derive(Debug, Default)]
struct Shares {
    of_servers: HashMap<Tenant, Weak<Semaphore>>,
    /// Number of entries at which idle ones are removed.
    sweep_at: usize,
}

/// Permits of a server; dropping it gives them back.
#[derive(Debug, Default)]
pub(crate) struct FairPermit {
    /// Equal numbers of permits from the server's share and from the whole pool.
    held: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl FairPool {
    pub(crate) fn new(permits: usize, share_max: usize, wait_max: Duration) -> Self {
        let permits = permits.clamp(1, (u32::MAX as usize).min(Semaphore::MAX_PERMITS));
        let share_max = share_max.clamp(1, permits);
        Self { all: Arc::new(Semaphore::new(permits)), share_max, wait_max, shares: Mutex::default() }
    }

    /// Most permits that one server can hold.
    pub(crate) fn share_max(&self) -> usize {
        self.share_max
    }

    /// Waits for permits up to a limit; `None` if none got free in time.
    pub(crate) async fn acquire(&self, tenant: impl Into<Tenant>, permits: usize) -> Option<FairPermit> {
        timeout(self.wait_max, self.acquire_in_time(tenant, permits)).await.ok()
    }

    /// Waits for permits without a limit. Only for work that never waits while it holds them.
    pub(crate) async fn acquire_in_time(&self, tenant: impl Into<Tenant>, permits: usize) -> FairPermit {
        if permits == 0 {
            return FairPermit::default();
        }
        let permits =
            u32::try_from(permits.min(self.share_max)).expect("a pool has no more permits than fit");
        let own = self.share_of(tenant.into());
        // Take the server's own share first: waiting for it blocks no other server.
        let own = own.acquire_many_owned(permits).await.expect("nobody closes a share");
        let all = Arc::clone(&self.all).acquire_many_owned(permits).await.expect("nobody closes the pool");
        FairPermit { held: Some((own, all)) }
    }

    fn share_of(&self, tenant: Tenant) -> Arc<Semaphore> {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.of_servers.get(&tenant).and_then(Weak::upgrade) {
            return share;
        }
        if shares.of_servers.len() >= shares.sweep_at.max(SWEEP_SERVERS_MIN) {
            shares.of_servers.retain(|_, share| share.strong_count() > 0);
            shares.sweep_at = shares.of_servers.len() * 2;
        }
        let share = Arc::new(Semaphore::new(self.share_max));
        shares.of_servers.insert(tenant, Arc::downgrade(&share));
        share
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.all.available_permits()
    }
}

impl FairPermit {
    pub(crate) fn count(&self) -> usize {
        self.held.as_ref().map_or(0, |(own, _)| own.num_permits())
    }

    /// Takes over the permits of `more`, which belongs to the same server and pool.
    pub(crate) fn add(&mut self, more: Self) {
        match (&mut self.held, more.held) {
            (Some((own, all)), Some((more_own, more_all))) => {
                own.merge(more_own);
                all.merge(more_all);
            }
            (held @ None, more) => *held = more,
            (Some(_), None) => {}
        }
    }

    /// Splits off all permits above `count`.
    pub(crate) fn split_above(&mut self, count: usize) -> Self {
        let excess = self.count().saturating_sub(count);
        let Some((own, all)) = self.held.as_mut().filter(|_| excess > 0) else { return Self::default() };
        Self { held: own.split(excess).zip(all.split(excess)) }
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
        let held = pool.acquire(ONE, 3).await.unwrap();
        assert!(pool.acquire(ONE, 2).await.is_none(), "four is the share");
        let other = pool.acquire(OTHER, 100).await.unwrap();
        assert_eq!((other.count(), pool.free()), (4, 1));
        drop(held);
        assert_eq!(pool.acquire(ONE, 4).await.unwrap().count(), 4);
        drop(other);
        assert_eq!(pool.free(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn permits_are_added_and_split() {
        let pool = FairPool::new(8, 8, WAIT);
        let mut held = pool.acquire(ONE, 2).await.unwrap();
        held.add(pool.acquire(ONE, 3).await.unwrap());
        let excess = held.split_above(1);
        assert_eq!((held.count(), excess.count(), pool.free()), (1, 4, 3));
        drop(excess);
        assert_eq!((held.split_above(1).count(), pool.free()), (0, 7));
    }

    #[tokio::test]
    async fn servers_that_hold_nothing_are_forgotten() {
        let pool = FairPool::new(8, 4, WAIT);
        for server in 0..10_000 {
            drop(pool.acquire(ServerId(server), 1).await.unwrap());
        }
        assert!(pool.shares.lock().of_servers.len() <= 2 * SWEEP_SERVERS_MIN);
    }
}
