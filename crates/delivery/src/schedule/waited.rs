//! The cause of a wait that is over, for the record of the attempt that ended it.

use std::time::Duration;

use postroad_model::Timestamp;

use super::block::Why;
use super::{Entry, Schedule};

/// Shorter waits are not noted.
const NOTABLE: Duration = Duration::from_secs(1);

/// A block that kept messages back, and when it was last seen.
#[derive(Debug)]
pub(super) struct SeenBlock {
    at: Timestamp,
    why: Why,
}

impl SeenBlock {
    pub(super) fn new(why: Why, now: Timestamp) -> Self {
        Self { at: now, why }
    }

    /// It ends only now: whoever came meanwhile was kept back by it.
    pub(super) fn ends(&mut self, now: Timestamp) {
        self.at = now;
    }
}

impl Schedule {
    /// One line about a wait of a second or more: how long, and the last block of its server, domain or site since it was due.
    pub(super) fn describe_wait(
        &self,
        queue_id: usize,
        lane: usize,
        entry: &Entry,
        now: Timestamp,
    ) -> Option<Box<str>> {
        let waited = now.since(entry.due_at);
        if waited < NOTABLE {
            return None;
        }
        let queue = &self.queues[queue_id];
        let of_server = self.servers.get(&entry.server_id).and_then(|gate| gate.last_block.as_ref());
        let blocks = [of_server, self.lanes[lane].last_block.as_ref(), queue.last_block.as_ref()];
        let last = blocks.into_iter().flatten().filter(|block| block.at >= entry.due_at);
        let seconds = waited.as_millis() as f64 / 1_000.0;
        let line = match last.max_by_key(|block| block.at) {
            Some(block) => format!("queue: waited {seconds:.1} s because {}", block.why),
            None => format!("queue: waited {seconds:.1} s for its turn at {}", queue.route.base_site),
        };
        Some(line.into())
    }
}
