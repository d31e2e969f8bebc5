//! The cause of a past wait, for the record of the attempt that ended it.

use std::time::Duration;

use postroad_model::Timestamp;

use super::block::Why;
use super::{Entry, Schedule};

/// Shorter waits are not noted.
const NOTABLE: Duration = Duration::from_secs(1);

/// An obstacle that blocked messages, and when it was last seen.
#[derive(Debug)]
pub(super) struct SeenBlock {
    at: Timestamp,
    why: Why,
}

impl SeenBlock {
    pub(super) fn new(why: Why, now: Timestamp) -> Self {
        Self { at: now, why }
    }

    /// It ends now: it blocked messages that arrived meanwhile.
    pub(super) fn ends(&mut self, now: Timestamp) {
        self.at = now;
    }
}

impl Schedule {
    /// One line about a wait of a second or more: how long, and the last block of its server, domain or site since it was
    /// due. `keeper` is the path whose address it kept.
    pub(super) fn describe_wait(
        &self,
        queue_id: usize,
        keeper: Option<usize>,
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
        let of_keeper = keeper.and_then(|path| self.paths[path].last_block.as_ref());
        // Of two that end together the last one counts.
        let blocks = [of_keeper, queue.last_block.as_ref(), self.lanes[lane].last_block.as_ref(), of_server];
        let last = blocks.into_iter().flatten().filter(|block| block.at >= entry.due_at);
        let seconds = waited.as_millis() as f64 / 1_000.0;
        let line = match last.max_by_key(|block| block.at) {
            Some(block) => format!("queue: waited {seconds:.1} s because {}", block.why),
            None => format!("queue: waited {seconds:.1} s for its turn at {}", queue.route.base_site),
        };
        Some(line.into())
    }
}
