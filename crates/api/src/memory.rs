//! Bounds on the bytes in memory. What a request or an answer holds is a share of a pool; shares that are not to be
//! had within a bounded wait are a 503, so that nobody waits for ever for somebody who waits for him. One server can
//! have a part of each pool only: what it leaves unread or unsent keeps no other server waiting.

use std::time::Duration;

use postroad_model::ServerId;

use crate::failure::{Failure, Reason};
use crate::fair_pool::{FairPermit, FairPool};

/// Above this a body or an answer is large: it is worked on off the async threads, and its memory comes out of a
/// pool where the small ones do not queue.
pub(crate) const LARGE_BYTES: usize = 256 << 10;

const KIB: usize = 1 << 10;
const SMALL_POOL_BYTES_MIN: usize = 4 << 20;
const POOL_BYTES_MIN: usize = 1 << 20;
/// Of each pool a server may hold half: several of its largest requests at once, and about the largest answer.
const BODIES_SHARE: usize = 2;
const ANSWERS_SHARE: usize = 2;

/// How the bytes that may be in memory are divided. The pools are apart, so that neither large requests nor answers
/// to slow readers can keep a small send waiting.
#[derive(Debug)]
pub(crate) struct Pools {
    /// Small bodies, and the beginnings of those that do not say how long they are.
    pub(crate) small: Pool,
    pub(crate) large: Pool,
    /// Answers.
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

/// Bytes that may be in memory, in KiB.
#[derive(Debug)]
pub(crate) struct Pool {
    kib: FairPool,
}

/// A part of a pool, given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Share {
    kib: FairPermit,
}

impl Pool {
    pub(crate) fn new(bytes: usize, share_bytes_max: usize, wait_max: Duration) -> Self {
        Self { kib: FairPool::new(bytes.div_ceil(KIB), share_bytes_max.div_ceil(KIB), wait_max) }
    }

    /// Makes `share` cover that many bytes. What is larger than all that a server may have gets all of that.
    pub(crate) async fn grow(
        &self,
        server_id: ServerId,
        share: &mut Share,
        bytes: usize,
    ) -> Result<(), Failure> {
        let more = bytes.div_ceil(KIB).min(self.kib.share_max()).saturating_sub(share.kib.count());
        match self.kib.acquire(server_id, more).await {
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

    /// Takes out what is not needed to cover that many bytes.
    pub(crate) fn split_above(&mut self, bytes: usize) -> Self {
        Self { kib: self.kib.split_above(bytes.div_ceil(KIB)) }
    }
}

#[cfg(test)]
mod tests {
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
        // Larger than the whole share: alone it is fine.
        let mut all = Share::default();
        pool.grow(ONE, &mut all, 64 << 10).await.unwrap();
        assert_eq!((all.bytes(), pool.free_bytes()), (4 << 10, 4 << 10));
    }
}
