//! Limit on the memory of fresh messages waiting for their first attempt. Beyond it only the ids are kept, and the
//! message is read from the store at its turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory of a send, and of each of its recipients, in addition to the body.
const OVERHEAD_BYTES: usize = 1_024;

#[derive(Debug)]
pub(crate) struct FreshMemory {
    used: AtomicUsize,
    bytes_max: usize,
}

/// Reserved memory, which is free again when the share is dropped.
#[derive(Debug)]
pub(super) struct Share {
    memory: Arc<FreshMemory>,
    bytes: usize,
}

impl FreshMemory {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), bytes_max })
    }

    pub(super) fn reserve(self: &Arc<Self>, body_bytes: usize, recipients: usize) -> Option<Share> {
        let bytes = body_bytes + OVERHEAD_BYTES * (1 + recipients);
        let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Share { memory: Arc::clone(self), bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_memory_has_room_again_after_a_release() {
        let memory = FreshMemory::new(10_000);
        let first = memory.reserve(5_000, 1).unwrap();
        assert!(memory.reserve(5_000, 1).is_none());
        drop(first);
        assert!(memory.reserve(5_000, 1).is_some());
    }
}
