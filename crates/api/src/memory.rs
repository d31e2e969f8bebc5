//! Bounds on the bytes in memory. What a request or an answer holds is a share of a pool; shares that are not to be
//! had within a bounded wait are a 503, so that nobody waits for ever for somebody who waits for him.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::failure::{Failure, Reason};

/// Above this a body or an answer is large: it is worked on off the async threads, and its memory comes out of a
/// pool where the small ones do not queue.
pub(crate) const LARGE_BYTES: usize = 256 << 10;

const KIB: usize = 1 << 10;
const SMALL_POOL_BYTES_MIN: usize = 4 << 20;
const POOL_BYTES_MIN: usize = 1 << 20;

/// How the bytes that may be in memory are divided. The pools are apart, so that neither large requests nor answers
/// to slow readers can keep a small send waiting.
#[derive(Debug)]
pub(crate) struct Pools {
    /// Small bodies, and the beginnings of those that do not say how long they are.
    pub(crate) small: Pool,
    pub(crate) large: Pool,
    /// Large answers.
    pub(crate) answers: Pool,
}

impl Pools {
    pub(crate) fn new(bytes_max: usize, wait_max: Duration) -> Self {
        let small = (bytes_max / 8).max(SMALL_POOL_BYTES_MIN);
        let answers = (bytes_max / 8 * 3).max(POOL_BYTES_MIN);
        let large = bytes_max.saturating_sub(small + answers).max(POOL_BYTES_MIN);
        Self {
            small: Pool::new(small, wait_max),
            large: Pool::new(large, wait_max),
            answers: Pool::new(answers, wait_max),
        }
    }
}

/// Bytes that may be in memory, in KiB.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Arc<Semaphore>,
    kib: usize,
    wait_max: Duration,
}

/// A part of a pool, given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Share {
    permit: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub(crate) fn new(bytes: usize, wait_max: Duration) -> Self {
        let kib = bytes.div_ceil(KIB).clamp(1, (u32::MAX as usize).min(Semaphore::MAX_PERMITS));
        Self { free: Arc::new(Semaphore::new(kib)), kib, wait_max }
    }

    /// Makes `share` cover that many bytes. What is larger than all there is may have all there is.
    pub(crate) async fn grow(&self, share: &mut Share, bytes: usize) -> Result<(), Failure> {
        let more = bytes.div_ceil(KIB).min(self.kib).saturating_sub(share.kib());
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more).expect("a pool has no more permits than fit");
        match timeout(self.wait_max, Arc::clone(&self.free).acquire_many_owned(more)).await {
            Ok(Ok(permit)) => {
                share.add(permit);
                Ok(())
            }
            _ => Err(Reason::Unavailable("the bytes in memory are at their limit".into()).into()),
        }
    }

    #[cfg(test)]
    pub(crate) fn free_bytes(&self) -> usize {
        self.free.available_permits() * KIB
    }
}

impl Share {
    fn kib(&self) -> usize {
        self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.kib() * KIB
    }

    /// Takes out what is not needed to cover that many bytes.
    pub(crate) fn split_above(&mut self, bytes: usize) -> Self {
        let excess = self.kib().saturating_sub(bytes.div_ceil(KIB));
        Self { permit: self.permit.as_mut().and_then(|permit| permit.split(excess)) }
    }

    fn add(&mut self, permit: OwnedSemaphorePermit) {
        match &mut self.permit {
            Some(held) => held.merge(permit),
            None => self.permit = Some(permit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(10);

    #[test]
    fn the_pools_together_are_all_there_is() {
        let pools = Pools::new(512 << 20, WAIT);
        let mib = [&pools.small, &pools.large, &pools.answers].map(|pool| pool.kib >> 10);
        assert_eq!(mib, [64, 256, 192]);
        let least = Pools::new(1, WAIT);
        let mib = [&least.small, &least.large, &least.answers].map(|pool| pool.kib >> 10);
        assert_eq!(mib, [4, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn shares_are_waited_for_split_and_given_back() {
        let pool = Pool::new(4 << 10, WAIT);
        let mut held = Share::default();
        pool.grow(&mut held, 2_500).await.unwrap();
        assert_eq!((held.bytes(), pool.free_bytes()), (3 << 10, 1 << 10));
        let refused = pool.grow(&mut Share::default(), 2 << 10).await.unwrap_err();
        assert!(matches!(refused.reason, Reason::Unavailable(_)));
        let excess = held.split_above(1_000);
        assert_eq!((held.bytes(), excess.bytes()), (1 << 10, 2 << 10));
        drop(excess);
        pool.grow(&mut Share::default(), 2 << 10).await.unwrap();
        drop(held);
        // Larger than everything: alone it is fine.
        let mut all = Share::default();
        pool.grow(&mut all, 64 << 10).await.unwrap();
        assert_eq!((all.bytes(), pool.free_bytes()), (4 << 10, 0));
    }
}
