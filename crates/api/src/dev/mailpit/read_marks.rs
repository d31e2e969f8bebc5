//! Read marks of messages, the number of deleted messages, and the uptime. In memory, like the inbox.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::group::Group;

/// Maximum number of marks; beyond it, the marks of the oldest messages are dropped. The inbox holds fewer messages,
/// but a message that is removed by other means than Mailpit's API leaves its mark behind.
const MARKS_MAX: usize = 20_000;

/// Read marks and counters. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct ReadMarks {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    read: Mutex<BTreeSet<u64>>,
    deleted: AtomicU64,
    started: Instant,
}

impl Default for ReadMarks {
    fn default() -> Self {
        let shared = Shared { read: Mutex::default(), deleted: AtomicU64::new(0), started: Instant::now() };
        Self { shared: Arc::new(shared) }
    }
}

impl ReadMarks {
    pub(super) fn is_read(&self, group: &Group) -> bool {
        self.shared.read.lock().contains(&group.id())
    }

    pub(super) fn set(&self, group: &Group, is_read: bool) {
        let mut read = self.shared.read.lock();
        if !is_read {
            read.remove(&group.id());
            return;
        }
        read.insert(group.id());
        if read.len() > MARKS_MAX {
            read.pop_first();
        }
    }

    pub(super) fn count_unread(&self, groups: &[Group]) -> usize {
        let read = self.shared.read.lock();
        groups.iter().filter(|group| !read.contains(&group.id())).count()
    }

    /// Counts deleted messages and removes their marks.
    pub(super) fn note_deleted(&self, groups: &[Group]) {
        let mut read = self.shared.read.lock();
        for group in groups {
            read.remove(&group.id());
        }
        self.shared.deleted.fetch_add(groups.len() as u64, Ordering::Relaxed);
    }

    pub(super) fn deleted(&self) -> u64 {
        self.shared.deleted.load(Ordering::Relaxed)
    }

    pub(super) fn uptime_secs(&self) -> u64 {
        self.shared.started.elapsed().as_secs()
    }
}
