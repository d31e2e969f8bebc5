//! The cause of a past wait, for the record of the attempt that ended it.

use std::time::Duration;

use postroad_model::Timestamp;

use super::block::BlockCause;
use super::{Entry, Schedule};

/// Shorter waits are not recorded.
const RECORDED_WAIT_MIN: Duration = Duration::from_secs(1);

/// If a block ended at most this long ago, it counts as the cause of a wait, not the connections in use after its end.
const JUST_ENDED: Duration = Duration::from_secs(1);

/// An obstacle that blocked messages, and when it was last seen.
#[derive(Debug)]
pub(super) struct SeenBlock {
    at: Timestamp,
    /// Expected end of the obstacle, if known.
    until: Option<Timestamp>,
    cause: BlockCause,
}

impl SeenBlock {
    pub(super) fn new(cause: BlockCause, now: Timestamp) -> Self {
        Self { at: now, until: None, cause }
    }

    /// A block with the end that it is expected to have.
    pub(super) fn with_end(cause: BlockCause, until: Option<Timestamp>, now: Timestamp) -> Self {
        Self { at: now, until, cause }
    }

    /// Notes that connections are in use, unless a block has just ended: then the connections carry the messages that
    /// the block delayed.
    pub(super) fn note_connections_in_use(last: &mut Option<Self>, cause: BlockCause, now: Timestamp) {
        match last {
            Some(block) if block.until.is_some_and(|until| now.since(until) <= JUST_ENDED) => block.end(now),
            _ => *last = Some(Self::new(cause, now)),
        }
    }

    /// When the obstacle last blocked messages, to find the latest block. Connections in use rank lower than a block
    /// that has just ended.
    fn rank(&self, now: Timestamp) -> Timestamp {
        let ended = self.until.filter(|until| *until <= now);
        let last = ended.map_or(self.at, |until| until.max(self.at));
        if matches!(self.cause, BlockCause::Connections { .. }) { last.minus(JUST_ENDED) } else { last }
    }

    /// The block ends now, so messages that arrived until now waited for it.
    pub(super) fn end(&mut self, now: Timestamp) {
        self.at = now;
    }
}

impl Schedule {
    /// One line about a wait of a second or more: how long, and the last block of the message's server, domain or site
    /// since it was due. `sticky_path` is the path whose address the message kept.
    pub(super) fn describe_wait(
        &self,
        queue_id: usize,
        sticky_path: Option<usize>,
        lane: usize,
        entry: &Entry,
        now: Timestamp,
    ) -> Option<Box<str>> {
        let waited = now.since(entry.due_at);
        if waited < RECORDED_WAIT_MIN {
            return None;
        }
        let queue = &self.queues[queue_id];
        let server_block = self.servers.get(&entry.server_id).and_then(|gate| gate.last_block.as_ref());
        let sticky_path_block = sticky_path.and_then(|path| self.paths[path].last_block.as_ref());
        // Of two blocks that end together, the later one in this list counts.
        let blocks = [
            sticky_path_block,
            queue.last_block.as_ref(),
            self.lanes[lane].last_block.as_ref(),
            server_block,
        ];
        let last = blocks.into_iter().flatten().filter(|block| block.at >= entry.due_at);
        let seconds = waited.as_millis() as f64 / 1_000.0;
        let line = match last.max_by_key(|block| block.rank(now)) {
            Some(block) => format!("queue: waited {seconds:.1} s because {}", block.cause),
            None => format!("queue: waited {seconds:.1} s for its turn at {}", queue.route.site),
        };
        Some(line.into())
    }
}
