//! Limits on the bytes that requests and answers hold in memory. Each request and each answer holds a share of a pool.
//! If no share gets free within a bounded wait, the call fails with 503; the bounded wait also prevents deadlocks. One
//! tenant can hold only a part of each pool, so that it cannot block other tenants.

use std::time::Duration;

use postroad_net::limits::BytePool;
pub(crate) use postroad_net::limits::ByteShare as Share;

use crate::failure::{Failure, Reason};
use crate::tenant::Tenant;

/// A body or answer above this size is large: it is processed off the async threads. Large bodies have a pool of their
/// own, so that small bodies do not wait for them.
pub(crate) const SMALL_BYTES_MAX: usize = 256 << 10;

/// Minimum sizes of the pool of small bodies, and of the other pools.
const SMALL_POOL_BYTES_MIN: usize = 4 << 20;
const POOL_BYTES_MIN: usize = 1 << 20;
/// A tenant may hold at most the pool's bytes divided by this number. By default that is room for two or three of the
/// largest requests, or for most of the largest answer.
const BODY_POOL_DIVISOR: usize = 2;
const ANSWER_POOL_DIVISOR: usize = 2;

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
            small: Pool::new(small, small / BODY_POOL_DIVISOR, wait_max),
            large: Pool::new(large, large / BODY_POOL_DIVISOR, wait_max),
            answers: Pool::new(answers, answers / ANSWER_POOL_DIVISOR, wait_max),
        }
    }
}

/// Pool of bytes; each tenant may hold a part of it.
#[derive(Debug)]
pub(crate) struct Pool {
    bytes: BytePool<Tenant>,
}

impl Pool {
    pub(crate) fn new(bytes: usize, share_bytes_max: usize, wait_max: Duration) -> Self {
        Self { bytes: BytePool::new(bytes, share_bytes_max, wait_max) }
    }

    /// Makes `share` cover `bytes`. A size above the tenant's maximum takes the whole maximum.
    pub(crate) async fn grow(
        &self,
        tenant: impl Into<Tenant>,
        share: &mut Share,
        bytes: usize,
    ) -> Result<(), Failure> {
        if self.bytes.grow(tenant.into(), share, bytes).await {
            Ok(())
        } else {
            Err(Reason::Unavailable("too many bytes of requests and answers are in memory".into()).into())
        }
    }

    #[cfg(test)]
    pub(crate) fn free_bytes(&self) -> usize {
        self.bytes.free_bytes()
    }
}

#[cfg(test)]
mod tests {
    use postroad_model::ServerId;

    use super::*;

    const WAIT: Duration = Duration::from_secs(10);
    const SERVER_1: ServerId = ServerId(1);

    #[test]
    fn the_pools_divide_the_memory_and_have_minimum_sizes() {
        let pools = Pools::new(512 << 20, WAIT);
        let mib = [&pools.small, &pools.large, &pools.answers].map(|pool| pool.free_bytes() >> 20);
        assert_eq!(mib, [64, 256, 192]);
        let shares =
            [&pools.small, &pools.large, &pools.answers].map(|pool| pool.bytes.share_bytes_max() >> 20);
        assert_eq!(shares, [32, 128, 96]);
        let minimal = Pools::new(1, WAIT);
        let mib = [&minimal.small, &minimal.large, &minimal.answers].map(|pool| pool.free_bytes() >> 20);
        assert_eq!(mib, [4, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_fails_if_no_memory_becomes_free_in_time() {
        let pool = Pool::new(8 << 10, 4 << 10, WAIT);
        let mut share = Share::default();
        pool.grow(SERVER_1, &mut share, 4 << 10).await.unwrap();
        let refused = pool.grow(SERVER_1, &mut Share::default(), 2 << 10).await.unwrap_err();
        assert!(matches!(refused.reason, Reason::Unavailable(_)));
        pool.grow(ServerId(2), &mut Share::default(), 2 << 10).await.expect("others have their own share");
    }
}
