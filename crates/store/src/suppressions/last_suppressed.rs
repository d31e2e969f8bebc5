//! Time of each server's latest suppression. A message that is sent right after its acceptance is read again only if
//! its server has suppressed an address since. For SQLite, where every change is made in this process.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use postroad_model::{ServerId, Timestamp};

use crate::queue::BeginRequest;

/// One entry for each server that may have suppressed an address since this process started.
#[derive(Debug, Default)]
pub(crate) struct LastSuppressed(Mutex<HashMap<ServerId, Timestamp>>);

impl LastSuppressed {
    /// Records suppressions. Call this after the commit and before the caller gets its answer.
    pub(crate) fn note(&self, servers: impl IntoIterator<Item = ServerId>, now: Timestamp) {
        let mut last = self.lock();
        for server_id in servers {
            last.insert(server_id, now);
        }
    }

    /// Sets `needs_message` for messages whose server has suppressed an address since they were due.
    pub(crate) fn require_read(&self, entries: &mut [BeginRequest]) {
        let last = self.lock();
        for entry in entries {
            entry.needs_message |= last.get(&entry.server_id).is_some_and(|at| *at >= entry.due_at);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerId, Timestamp>> {
        self.0.lock()
    }
}
