//! Limit on the bytes of all messages being received or stored. Small messages have their own pool, so that slow large
//! ones cannot delay them. One tenant can hold only a part of each pool, so that it cannot block the others.

use std::net::IpAddr;
use std::time::Duration;

use postroad_model::ServerId;
use postroad_net::limits::{BytePool, ByteShare};

/// Messages up to this size use the pool for small messages.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// A message's share exceeds its size by at most this, because shares grow in steps.
const STEP_BYTES_MAX: usize = 512 << 10;
/// A tenant may hold the pool's bytes divided by this number, or one message of the largest size if that is more.
const TENANT_DIVISOR: usize = 2;

/// Unit that the limit per tenant applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tenant {
    /// The server that a client submits for.
    Server(ServerId),
    /// The network of a host that returns mail, or of a client without a caller.
    Network(IpAddr),
}

#[derive(Debug)]
pub(crate) struct Memory {
    small: BytePool<Tenant>,
    large: BytePool<Tenant>,
}

/// Memory held by one message; dropping it frees the memory.
#[derive(Debug, Default)]
pub(crate) struct Share {
    small: ByteShare,
    large: ByteShare,
}

impl Memory {
    /// A tenant's part of the pool of large messages always has room for one message of the largest size, including its
    /// growth steps.
    pub(crate) fn new(bytes_max: usize, message_bytes_max: usize, wait_max: Duration) -> Self {
        let small = bytes_max / 4;
        let pool = |bytes: usize, largest: usize| {
            let bytes = bytes.max(largest);
            BytePool::new(bytes, (bytes / TENANT_DIVISOR).max(largest), wait_max)
        };
        Self {
            small: pool(small, SMALL_BYTES_MAX),
            large: pool(bytes_max - small, message_bytes_max + STEP_BYTES_MAX),
        }
    }

    /// Makes `share` cover `bytes`. Returns `false` if the memory did not become free in time.
    pub(crate) async fn grow(&self, tenant: Tenant, share: &mut Share, bytes: usize) -> bool {
        if bytes <= SMALL_BYTES_MAX {
            return self.small.grow(tenant, &mut share.small, bytes).await;
        }
        let is_grown = self.large.grow(tenant, &mut share.large, bytes).await;
        if is_grown {
            share.small = ByteShare::default();
        }
        is_grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(10);
    const ONE: Tenant = Tenant::Server(ServerId(1));

    #[tokio::test(start_paused = true)]
    async fn large_messages_wait_for_each_other_with_a_timeout() {
        let memory = Memory::new(4 << 20, 2 << 20, WAIT);
        let mut first = Share::default();
        assert!(memory.grow(ONE, &mut first, 1_000).await);
        assert!(memory.grow(ONE, &mut first, 2 << 20).await);
        assert!(first.small.bytes() == 0, "it has moved to the other pool");
        let mut second = Share::default();
        assert!(!memory.grow(ONE, &mut second, 2 << 20).await);
        assert!(memory.grow(ONE, &mut second, 64 << 10).await, "small messages do not wait for large ones");
        drop(first);
        assert!(memory.grow(ONE, &mut second, 2 << 20).await);
        drop(second);
        assert_eq!((memory.small.free_bytes(), memory.large.free_bytes()), (1 << 20, 3 << 20));
    }

    #[tokio::test(start_paused = true)]
    async fn one_tenant_leaves_half_of_each_pool_to_others() {
        let memory = Memory::new(16 << 20, 1 << 20, WAIT);
        let take_all = async |tenant: Tenant, bytes: usize| {
            let mut shares = Vec::new();
            loop {
                let mut share = Share::default();
                if !memory.grow(tenant, &mut share, bytes).await {
                    return shares;
                }
                shares.push(share);
            }
        };
        let network = Tenant::Network(IpAddr::from([192, 0, 2, 1]));
        for (bytes, count) in [(64 << 10, 32), (1 << 20, 6)] {
            let (first, second) = (take_all(ONE, bytes).await, take_all(network, bytes).await);
            assert_eq!((first.len(), second.len()), (count, count), "{bytes} bytes");
        }
    }
}
