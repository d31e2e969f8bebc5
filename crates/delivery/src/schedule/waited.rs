//! The cause of a past wait, for the record of the attempt that ended it.

use std::time::Duration;

use postroad_model::Timestamp;

use super::block::Why;
use super::{Entry, Schedule};

/// Shorter waits are not recorded.
const NOTABLE: Duration = Duration::from_secs(1);

/// If a block ended at most this long ago, it counts as the cause of a wait, not the connections in use after its end.
const JUST_ENDED: Duration = Duration::from_secs(1);

/// An obstacle that blocked messages, and when it was last seen.
#[derive(Debug)]
pub(super) struct SeenBlock {
    at: Timestamp,
    /// Expected end of the obstacle, if known.
    until: Option<Timestamp>,
    why: Why,
}

impl SeenBlock {
    pub(super) fn new(why: Why, now: Timestamp) -> Self {
        Self { at: now, until: None, why }
    }

    /// A block with the end that it is expected to have.
    pub(super) fn with_end(why: Why, until: Option<Timestamp>, now: Timestamp) -> Self {
        Self { at: now, until, why }
    }

    /// Notes that connections are in use, unless a block has just ended: then the connections carry the messages that
    /// the block held back.
    pub(super) fn connections_in_use(last: &mut Option<Self>, why: Why, now: Timestamp) {
        match last {
            Some(block) if block.until.is_some_and(|until| now.since(until) <= JUST_ENDED) => block.ends(now),
            _ => *last = Some(Self::new(why, now)),
        }
    }

    /// When the obstacle last blocked messages, to find the latest block. Connections in use rank lower than a block
    /// that has just ended.
    fn rank(&self, now: Timestamp) -> Timestamp {
        let ended = self.until.filter(|until| *until <= now);
        let last = ended.map_or(self.at, |until| until.max(self.at));
        if matches!(self.why, Why::Connections { .. }) { last.minus(JUST_ENDED) } else { last }
    }

    /// The block ends now, so messages that arrived until now waited for it.
    pub(super) fn ends(&mut self, now: Timestamp) {
        self.at = now;
    }
}

impl Schedule {
    /// One line about a wait of a second or more: how long, and the last block of the message's server, domain or site
    /// since it was due. `keeper` is the path whose address the message kept.
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
        // Of two blocks that end together, the later one in this list counts.
        let blocks = [of_keeper, queue.last_block.as_ref(), self.lanes[lane].last_block.as_ref(), of_server];
        let last = blocks.into_iter().flatten().filter(|block| block.at >= entry.due_at);
        let seconds = waited.as_millis() as f64 / 1_000.0;
        let line = match last.max_by_key(|block| block.rank(now)) {
            Some(block) => format!("queue: waited {seconds:.1} s because {}", block.why),
            None => format!("queue: waited {seconds:.1} s for its turn at {}", queue.route.site),
        };
        Some(line.into())
    }
}
