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
pub(super) struct InboxState {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Ids of the messages that were read.
    read_ids: Mutex<BTreeSet<u64>>,
    deleted_count: AtomicU64,
    started: Instant,
}

impl Default for InboxState {
    fn default() -> Self {
        let shared =
            Shared { read_ids: Mutex::default(), deleted_count: AtomicU64::new(0), started: Instant::now() };
        Self { shared: Arc::new(shared) }
    }
}

impl InboxState {
    pub(super) fn is_read(&self, group: &Group) -> bool {
        self.shared.read_ids.lock().contains(&group.id())
    }

    pub(super) fn set_read(&self, group: &Group, is_read: bool) {
        let mut read_ids = self.shared.read_ids.lock();
        if !is_read {
            read_ids.remove(&group.id());
            return;
        }
        read_ids.insert(group.id());
        if read_ids.len() > MARKS_MAX {
            read_ids.pop_first();
        }
    }

    pub(super) fn count_unread(&self, groups: &[Group]) -> usize {
        let read_ids = self.shared.read_ids.lock();
        groups.iter().filter(|group| !read_ids.contains(&group.id())).count()
    }

    /// Counts deleted messages and removes their marks.
    pub(super) fn note_deleted(&self, groups: &[Group]) {
        let mut read_ids = self.shared.read_ids.lock();
        for group in groups {
            read_ids.remove(&group.id());
        }
        self.shared.deleted_count.fetch_add(groups.len() as u64, Ordering::Relaxed);
    }

    pub(super) fn deleted_count(&self) -> u64 {
        self.shared.deleted_count.load(Ordering::Relaxed)
    }

    pub(super) fn uptime_secs(&self) -> u64 {
        self.shared.started.elapsed().as_secs()
    }
}
