//! Retries that keep the source address of their last attempt. A receiver that greylists by address knows a message again
//! only if it comes from there. They wait for their turn like all others; then the path of their address has them.

use std::time::Duration;

use postroad_model::Timestamp;

use super::block::Why;
use super::{Entry, Schedule};

/// An address whose connections have hung for this long keeps nothing.
const HUNG_AFTER: Duration = Duration::from_mins(1);

impl Schedule {
    /// The other path of the queue that this message should go by, if it is healthy.
    pub(super) fn keeper(&mut self, path_id: usize, entry: &Entry, now: Timestamp) -> Option<usize> {
        let source = entry.source.filter(|source| *source != self.paths[path_id].source)?;
        let paths = &self.queues[self.paths[path_id].queue].paths;
        let keeper = paths.iter().copied().find(|other| self.paths[*other].source == source)?;
        self.is_healthy(keeper, now).then_some(keeper)
    }

    /// One that has only to wait for its next turn by the provider's rate or the receiver's is healthy.
    fn is_healthy(&mut self, path_id: usize, now: Timestamp) -> bool {
        let path = &self.paths[path_id];
        if path.retired || path.has_taken_nothing_for(HUNG_AFTER, now) {
            return false;
        }
        self.path_block(path_id, now)
            .is_none_or(|block| matches!(block.why, Why::ProviderRate { .. } | Why::TooFast { .. }))
    }

    /// Orders connections for the retries that keep their paths' addresses.
    pub(super) fn pump_kept(&mut self, queue_id: usize, now: Timestamp) {
        for path_id in self.queues[queue_id].paths.clone() {
            if self.paths[path_id].kept.is_empty() || self.let_go_if_unhealthy(path_id, now) {
                continue;
            }
            if let Some(until) = self.path_block(path_id, now).and_then(|block| block.until) {
                self.wake_queue_at(until, queue_id);
                continue;
            }
            while (self.paths[path_id].coming() as usize) < self.paths[path_id].kept.len()
                && self.can_take_more(path_id, now)
            {
                self.order(path_id, now);
            }
            if self.paths[path_id].connections == 0 {
                match self.opening_block(path_id, now) {
                    Some(until) => self.wake_queue_at(until, queue_id),
                    None => self.line_up_for_connection(queue_id, now),
                }
            }
        }
    }

    /// Gives what an unhealthy path kept to the others of the pool; whether it did.
    pub(super) fn let_go_if_unhealthy(&mut self, path_id: usize, now: Timestamp) -> bool {
        if self.paths[path_id].kept.is_empty() || self.is_healthy(path_id, now) {
            return false;
        }
        let queue = self.paths[path_id].queue;
        while let Some((lane, entry)) = self.paths[path_id].kept.pop_back() {
            let entry = Entry { source: None, ..entry };
            self.queues[queue].waiting.push_front(lane, entry);
        }
        true
    }
}
