//! Limit on the bytes of all messages being received. Small messages have their own pool, so that slow large
//! ones cannot delay them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

const KIB: usize = 1 << 10;
const SMALL_BYTES_MAX: usize = 64 << 10;
const STEP_BYTES_MAX: usize = 512 << 10;

#[derive(Debug)]
pub(crate) struct Memory {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    wait_max: Duration,
}

/// Memory held by one message; dropping it gives the memory back.
#[derive(Debug, Default)]
pub(crate) struct Share {
    small: Option<OwnedSemaphorePermit>,
    large: Option<OwnedSemaphorePermit>,
}

impl Memory {
    /// The pool always fits the largest message, including its growth steps.
    pub(crate) fn new(bytes_max: usize, message_bytes_max: usize, wait_max: Duration) -> Self {
        let small = bytes_max / 4;
        let large = (bytes_max - small).max(message_bytes_max + STEP_BYTES_MAX);
        let pool = |bytes: usize| Arc::new(Semaphore::new(bytes.div_ceil(KIB).min(Semaphore::MAX_PERMITS)));
        Self { small: pool(small.max(SMALL_BYTES_MAX)), large: pool(large), wait_max }
    }

    /// Makes `share` cover `bytes`. Returns `false` if the memory did not get free in time.
    pub(crate) async fn grow(&self, share: &mut Share, bytes: usize) -> bool {
        let is_small = bytes <= SMALL_BYTES_MAX;
        let (pool, part) =
            if is_small { (&self.small, &mut share.small) } else { (&self.large, &mut share.large) };
        let held = part.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let Ok(more) = u32::try_from(bytes.div_ceil(KIB).saturating_sub(held)) else { return false };
        if more == 0 {
            return true;
        }
        let Ok(Ok(permit)) = timeout(self.wait_max, Arc::clone(pool).acquire_many_owned(more)).await else {
            return false;
        };
        match part {
            Some(held) => held.merge(permit),
            None => *part = Some(permit),
        }
        if !is_small {
            share.small = None;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn large_messages_wait_for_each_other_and_not_for_ever() {
        let memory = Memory::new(4 << 20, 2 << 20, WAIT);
        let mut first = Share::default();
        assert!(memory.grow(&mut first, 1_000).await);
        assert!(memory.grow(&mut first, 2 << 20).await);
        assert!(first.small.is_none(), "it has moved to the other pool");
        let mut second = Share::default();
        assert!(!memory.grow(&mut second, 2 << 20).await);
        assert!(memory.grow(&mut second, 64 << 10).await, "small ones do not queue there");
        drop(first);
        assert!(memory.grow(&mut second, 2 << 20).await);
        drop(second);
        assert_eq!((memory.small.available_permits(), memory.large.available_permits()), (1_024, 3_072));
    }
}
