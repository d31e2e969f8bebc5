//! Limits on the bytes that requests and answers hold in memory. Each holds a share of a pool; if no share gets
//! free within a bounded wait, the call fails with 503, which also prevents deadlocks. One server can hold only
//! a part of each pool, so it cannot block the others.

use std::time::Duration;

use crate::failure::{Failure, Reason};
use crate::fair_pool::{FairPermit, FairPool};
use crate::tenant::Tenant;

/// A body or answer above this size is large: it is processed off the async threads, and its memory comes from
/// a pool in which small ones do not wait.
pub(crate) const LARGE_BYTES: usize = 256 << 10;

const KIB: usize = 1 << 10;
const SMALL_POOL_BYTES_MIN: usize = 4 << 20;
const POOL_BYTES_MIN: usize = 1 << 20;
/// A server may hold half of each pool: several of its largest requests, or about the largest answer.
const BODIES_SHARE: usize = 2;
const ANSWERS_SHARE: usize = 2;

/// Pools of memory. They are separate so that neither large requests nor slow readers can delay a small send.
#[derive(Debug)]
pub(crate) struct Pools {
    /// Small bodies, and the first bytes of bodies without a length.
    pub(crate) small: Pool,
    pub(crate) large: Pool,
    /// Answers that are not sent yet.
    pub(crate) answers: Pool,
}

impl Pools {
    pub(crate) fn new(bytes_max: usize, wait_max: Duration) -> Self {
        let small = (bytes_max / 8).max(SMALL_POOL_BYTES_MIN);
        let answers = (bytes_max / 8 * 3).max(POOL_BYTES_MIN);
        let large = bytes_max.saturating_sub(small + answers).max(POOL_BYTES_MIN);
        Self {
            small: Pool::new(small, small / BODIES_SHARE, wait_max),
            large: Pool::new(large, large / BODIES_SHARE, wait_max),
            answers: Pool::new(answers, answers / ANSWERS_SHARE, wait_max),
        }
    }
}

/// Pool of bytes, counted in KiB.
#[derive(Debug)]
pub(crate) struct Pool {
    kib: FairPool,
}

/// Part of a pool; dropping it gives the memory back.
#[derive(Debug, Default)]
pub(crate) struct Share {
    kib: FairPermit,
}

impl Pool {
    pub(crate) fn new(bytes: usize, share_bytes_max: usize, wait_max: Duration) -> Self {
        Self { kib: FairPool::new(bytes.div_ceil(KIB), share_bytes_max.div_ceil(KIB), wait_max) }
    }

    /// Makes `share` cover `bytes`. A size above the server's maximum takes the whole maximum.
    pub(crate) async fn grow(
        &self,
        tenant: impl Into<Tenant>,
        share: &mut Share,
        bytes: usize,
    ) -> Result<(), Failure> {
        let more = bytes.div_ceil(KIB).min(self.kib.share_max()).saturating_sub(share.kib.count());
        match self.kib.acquire(tenant, more).await {
            Some(permit) => {
                share.kib.add(permit);
                Ok(())
            }
            None => Err(Reason::Unavailable("the bytes in memory are at their limit".into()).into()),
        }
    }

    #[cfg(test)]
    pub(crate) fn free_bytes(&self) -> usize {
        self.kib.free() * KIB
    }
}

impl Share {
    pub(crate) fn bytes(&self) -> usize {
        self.kib.count() * KIB
    }

    /// Splits off what is not needed to cover `bytes`.
    pub(crate) fn split_above(&mut self, bytes: usize) -> Self {
        Self { kib: self.kib.split_above(bytes.div_ceil(KIB)) }
    }
}

#[cfg(test)]
mod tests {
    use postroad_model::ServerId;

    use super::*;

    const WAIT: Duration = Duration::from_secs(10);
    const ONE: ServerId = ServerId(1);

    #[test]
    fn the_pools_together_are_all_there_is() {
        let pools = Pools::new(512 << 20, WAIT);
        let mib = [&pools.small, &pools.large, &pools.answers].map(|pool| pool.free_bytes() >> 20);
        assert_eq!(mib, [64, 256, 192]);
        let shares = [&pools.small, &pools.large, &pools.answers].map(|pool| pool.kib.share_max() >> 10);
        assert_eq!(shares, [32, 128, 96]);
        let least = Pools::new(1, WAIT);
        let mib = [&least.small, &least.large, &least.answers].map(|pool| pool.free_bytes() >> 20);
        assert_eq!(mib, [4, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn shares_are_waited_for_split_and_given_back() {
        let pool = Pool::new(8 << 10, 4 << 10, WAIT);
        let mut held = Share::default();
        pool.grow(ONE, &mut held, 2_500).await.unwrap();
        assert_eq!((held.bytes(), pool.free_bytes()), (3 << 10, 5 << 10));
        let refused = pool.grow(ONE, &mut Share::default(), 2 << 10).await.unwrap_err();
        assert!(matches!(refused.reason, Reason::Unavailable(_)));
        pool.grow(ServerId(2), &mut Share::default(), 2 << 10).await.expect("others have their own share");
        let excess = held.split_above(1_000);
        assert_eq!((held.bytes(), excess.bytes()), (1 << 10, 2 << 10));
        drop(excess);
        pool.grow(ONE, &mut Share::default(), 2 << 10).await.unwrap();
        drop(held);
        // Larger than the whole share: accepted while the server holds nothing else.
        let mut all = Share::default();
        pool.grow(ONE, &mut all, 64 << 10).await.unwrap();
        assert_eq!((all.bytes(), pool.free_bytes()), (4 << 10, 4 << 10));
    }
}
