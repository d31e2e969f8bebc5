//! Limit on the bytes of all messages being received. Small messages have their own pool, so that slow large
//! ones cannot delay them.

use std::time::Duration;

use postroad_net::limits::{BytePool, ByteShare};

/// Messages up to this size use the pool for small messages.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// A message's share exceeds its size by at most this, because shares grow in steps.
const STEP_BYTES_MAX: usize = 512 << 10;

#[derive(Debug)]
pub(crate) struct Memory {
    small: BytePool<()>,
    large: BytePool<()>,
}

/// Memory held by one message; dropping it frees the memory.
#[derive(Debug, Default)]
pub(crate) struct Share {
    small: ByteShare,
    large: ByteShare,
}

impl Memory {
    /// The pool of large messages always fits the largest message, including its growth steps.
    pub(crate) fn new(bytes_max: usize, message_bytes_max: usize, wait_max: Duration) -> Self {
        let small = bytes_max / 4;
        let large = (bytes_max - small).max(message_bytes_max + STEP_BYTES_MAX);
        let pool = |bytes: usize| BytePool::new(bytes, bytes, wait_max);
        Self { small: pool(small.max(SMALL_BYTES_MAX)), large: pool(large) }
    }

    /// Makes `share` cover `bytes`. Returns `false` if the memory did not get free in time.
    pub(crate) async fn grow(&self, share: &mut Share, bytes: usize) -> bool {
        if bytes <= SMALL_BYTES_MAX {
            return self.small.grow((), &mut share.small, bytes).await;
        }
        let is_grown = self.large.grow((), &mut share.large, bytes).await;
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

    #[tokio::test(start_paused = true)]
    async fn large_messages_wait_for_each_other_with_a_timeout() {
        let memory = Memory::new(4 << 20, 2 << 20, WAIT);
        let mut first = Share::default();
        assert!(memory.grow(&mut first, 1_000).await);
        assert!(memory.grow(&mut first, 2 << 20).await);
        assert!(first.small.bytes() == 0, "it has moved to the other pool");
        let mut second = Share::default();
        assert!(!memory.grow(&mut second, 2 << 20).await);
        assert!(memory.grow(&mut second, 64 << 10).await, "small messages do not wait for large ones");
        drop(first);
        assert!(memory.grow(&mut second, 2 << 20).await);
        drop(second);
        assert_eq!((memory.small.free_bytes(), memory.large.free_bytes()), (1 << 20, 3 << 20));
    }
}
