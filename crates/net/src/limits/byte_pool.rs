//! Limit on bytes in memory. Each holder has a share; dropping the share frees the bytes.

use std::hash::Hash;
use std::time::Duration;

use super::fair_pool::{FairPermit, FairPool};

const KIB: usize = 1 << 10;

/// Pool of bytes, counted in KiB. One tenant may hold only a part of it.
#[derive(Debug)]
pub struct BytePool<T> {
    kib: FairPool<T>,
}

/// Part of a pool.
#[derive(Debug, Default)]
pub struct ByteShare {
    kib: FairPermit,
}

impl<T: Copy + Eq + Hash> BytePool<T> {
    pub fn new(bytes: usize, share_bytes_max: usize, wait_max: Duration) -> Self {
        Self { kib: FairPool::new(bytes.div_ceil(KIB), share_bytes_max.div_ceil(KIB), wait_max) }
    }

    /// Makes `share` cover `bytes`. A size above the tenant's maximum takes the whole maximum. Returns `false` if the
    /// bytes did not become free in time.
    pub async fn grow(&self, tenant: T, share: &mut ByteShare, bytes: usize) -> bool {
        let more = bytes.div_ceil(KIB).min(self.kib.share_max()).saturating_sub(share.kib.count());
        match self.kib.acquire(tenant, more).await {
            Some(permit) => {
                share.kib.add(permit);
                true
            }
            None => false,
        }
    }

    pub fn free_bytes(&self) -> usize {
        self.kib.free() * KIB
    }

    /// Maximum number of bytes that one tenant can hold.
    pub fn share_bytes_max(&self) -> usize {
        self.kib.share_max() * KIB
    }
}

impl ByteShare {
    pub fn bytes(&self) -> usize {
        self.kib.count() * KIB
    }

    /// Splits off the part that is not needed to cover `bytes`.
    #[must_use]
    pub fn split_above(&mut self, bytes: usize) -> Self {
        Self { kib: self.kib.split_above(bytes.div_ceil(KIB)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn share_grows_up_to_its_maximum_and_can_be_split_and_released() {
        let pool = BytePool::new(8 << 10, 4 << 10, WAIT);
        let mut share = ByteShare::default();
        assert!(pool.grow(1, &mut share, 2_500).await);
        assert_eq!((share.bytes(), pool.free_bytes()), (3 << 10, 5 << 10));
        assert!(!pool.grow(1, &mut ByteShare::default(), 2 << 10).await);
        assert!(pool.grow(2, &mut ByteShare::default(), 2 << 10).await, "others have their own share");
        let excess = share.split_above(1_000);
        assert_eq!((share.bytes(), excess.bytes()), (1 << 10, 2 << 10));
        drop(excess);
        assert!(pool.grow(1, &mut ByteShare::default(), 2 << 10).await);
        drop(share);
        // Larger than the whole share: accepted while the tenant holds nothing else.
        let mut all = ByteShare::default();
        assert!(pool.grow(1, &mut all, 64 << 10).await);
        assert_eq!((all.bytes(), pool.free_bytes()), (4 << 10, 4 << 10));
    }
}
