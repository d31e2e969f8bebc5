//! Retries that keep the source address of their last attempt. A receiver that greylists by address recognises a
//! message only if it comes from that address. Retries wait for their turn like all others; then they move to the path
//! of their address.

use std::time::Duration;

use postroad_model::Timestamp;

use postroad_model::ServerId;

use super::block::{Block, BlockCause};
use super::site_queue::Admission;
use super::wait_cause::SeenBlock;
use super::{Entry, Schedule};

/// Retries no longer wait for an address whose connections have hung for this long.
const HUNG_AFTER: Duration = Duration::from_mins(1);
/// A retry waits for its source address if the address is blocked for at most this long; otherwise it may use another.
const SHORT_WAIT: Duration = Duration::from_secs(10);

/// Admits all entries that a path keeps: their servers and lanes were admitted before.
struct AdmitAll;

impl Admission for AdmitAll {
    fn admits_server(&mut self, _: ServerId) -> bool {
        true
    }

    fn admits_lane(&mut self, _: usize, _: ServerId) -> bool {
        true
    }
}

impl Schedule {
    /// The other path of the queue whose address this message keeps, if that path is healthy. A probe of a stopped lane
    /// may use any address.
    pub(super) fn find_sticky_path(
        &mut self,
        path_id: usize,
        lane: usize,
        entry: &Entry,
        now: Timestamp,
    ) -> Option<usize> {
        if self.lanes[lane].trouble.is_stopped(entry.server_id) {
            return None;
        }
        let source = entry.source.filter(|source| *source != self.paths[path_id].source)?;
        let paths = &self.queues[self.paths[path_id].queue].paths;
        let sticky_path = paths.iter().copied().find(|other| self.paths[*other].source == source)?;
        self.is_healthy(sticky_path, now).then_some(sticky_path)
    }

    /// Whether the path can send now or soon. Waits for a rate, and pauses of all sending, do not count against it.
    fn is_healthy(&mut self, path_id: usize, now: Timestamp) -> bool {
        let path = &self.paths[path_id];
        if path.retired
            || path.is_busy_without_request_for(HUNG_AFTER, now)
            || path.back_off.only_this_address_fails
        {
            return false;
        }
        match self.path_block(path_id, now) {
            None
            | Some(Block {
                cause: BlockCause::Paused(_) | BlockCause::ProviderRate { .. } | BlockCause::TooFast { .. },
                ..
            }) => true,
            Some(Block { cause: BlockCause::BackOff { .. } | BlockCause::Standstill { .. }, .. }) => false,
            Some(block) => block.until.is_some_and(|until| until.since(now) <= SHORT_WAIT),
        }
    }

    /// The next entry that keeps this path's address. Entries of stopped lanes return to the queue.
    pub(super) fn pop_sticky(&mut self, path_id: usize) -> Option<(usize, Entry)> {
        let queue = self.paths[path_id].queue;
        while let Some((lane, entry)) = self.paths[path_id].sticky_retries.pop(&mut AdmitAll) {
            if !self.lanes[lane].trouble.is_stopped(entry.server_id) {
                self.paths[path_id].took_sticky = true;
                return Some((lane, entry));
            }
            self.queues[queue].waiting.push(lane, entry);
        }
        None
    }

    /// Moves entries that wait for their address back to their queues, because their server or domain may be blocked
    /// now.
    pub(super) fn return_sticky_to_queues(&mut self) {
        for (_, path) in &mut self.paths {
            for (lane, entry) in path.sticky_retries.drain().into_iter().rev() {
                self.queues[path.queue].waiting.push_front(lane, entry);
            }
        }
    }

    /// Wakes or opens connections for the retries that keep their paths' addresses.
    pub(super) fn pump_sticky(&mut self, queue_id: usize, now: Timestamp) {
        for path_id in self.queues[queue_id].paths.clone() {
            if self.paths[path_id].sticky_retries.count() == 0
                || self.return_sticky_if_unhealthy(path_id, now)
            {
                continue;
            }
            if let Some(block) = self.path_block(path_id, now) {
                if let Some(until) = block.until {
                    self.wake_queue_at(until, queue_id);
                }
                self.paths[path_id].last_block = Some(SeenBlock::new(block.cause, now));
                continue;
            }
            while (self.paths[path_id].expected_requests() as usize)
                < self.paths[path_id].sticky_retries.count()
                && self.can_take_more(path_id, now)
            {
                self.wake_or_open(path_id, now);
            }
            if self.paths[path_id].connections == 0 {
                match self.opening_blocked_until(path_id, now) {
                    Some(until) => self.wake_queue_at(until, queue_id),
                    None => self.line_up_for_connection(queue_id, now),
                }
            }
        }
    }

    /// Moves the entries that an unhealthy path keeps back to the queue; returns whether there were any. The entries
    /// still use the path's address if the path is healthy again at their turn.
    pub(super) fn return_sticky_if_unhealthy(&mut self, path_id: usize, now: Timestamp) -> bool {
        if self.paths[path_id].sticky_retries.count() == 0 || self.is_healthy(path_id, now) {
            return false;
        }
        let queue = self.paths[path_id].queue;
        for (lane, entry) in self.paths[path_id].sticky_retries.drain().into_iter().rev() {
            self.queues[queue].waiting.push_front(lane, entry);
        }
        true
    }
}
