//! Messages waiting for one secured site from one pool. Servers take turns (deficit round robin), and so do the lanes
//! of a server: a password reset never waits behind another server's hundred thousand messages.

use std::collections::{HashMap, VecDeque};

use postroad_model::{MessageId, ServerId, Timestamp};

use super::entry::{Entry, LateBound};
use super::entry_queue::EntryQueue;

/// Maximum number of turns that one message costs; a small one costs one.
const COST_MAX: i64 = 8;
const BYTES_PER_TURN: u64 = 256 << 10;

/// Turns that a message of this size takes.
pub(crate) fn turn_cost(bytes: u64) -> i64 {
    (1 + (bytes / BYTES_PER_TURN) as i64).min(COST_MAX)
}

#[derive(Debug, Default)]
pub(super) struct SiteQueue {
    /// Servers with messages to send that are not blocked; the next one first.
    ring: VecDeque<ServerId>,
    servers: HashMap<ServerId, ServerQueue>,
    /// Number of waiting messages.
    waiting: usize,
}

#[derive(Debug, Default)]
struct ServerQueue {
    in_ring: bool,
    /// Whether the admission blocks the server, until `readmit_server`.
    is_blocked: bool,
    /// Turns left; negative while the server waits as many turns as its large messages cost.
    deficit: i64,
    ring: VecDeque<usize>,
    lanes: HashMap<usize, LaneQueue>,
    waiting: usize,
}

#[derive(Debug, Default)]
struct LaneQueue {
    in_ring: bool,
    entries: EntryQueue,
}

/// Whether a server or a lane may send now.
pub(super) trait Admission {
    /// On `false` the server is removed from the ring; call `readmit_server` to return it.
    fn admits_server(&mut self, server: ServerId) -> bool;
    /// On `false` the lane is removed from its server's ring; call `readmit_lane` to return it.
    fn admits_lane(&mut self, lane: usize, server: ServerId) -> bool;
}

impl SiteQueue {
    /// Number of waiting messages.
    pub(super) fn count(&self) -> usize {
        self.waiting
    }

    pub(super) fn count_of(&self, server: ServerId) -> usize {
        self.servers.get(&server).map_or(0, |server_queue| server_queue.waiting)
    }

    pub(super) fn oldest_due(&self) -> Option<Timestamp> {
        let lanes = self.servers.values().flat_map(|server_queue| server_queue.lanes.values());
        lanes.filter_map(|lane| lane.entries.front()).map(|entry| entry.due_at).min()
    }

    /// Whether this message waits in the queue. Looks at all messages of its server.
    pub(super) fn contains(&self, server: ServerId, message: MessageId) -> bool {
        let lanes =
            self.servers.get(&server).into_iter().flat_map(|server_queue| server_queue.lanes.values());
        lanes.flat_map(|lane| lane.entries.iter()).any(|entry| entry.message_id == message)
    }

    /// Whether this message waits in the queue, in this lane.
    pub(super) fn contains_in_lane(&self, lane: usize, server: ServerId, message: MessageId) -> bool {
        let queue = self.servers.get(&server).and_then(|server_queue| server_queue.lanes.get(&lane));
        queue.is_some_and(|queue| queue.entries.iter().any(|entry| entry.message_id == message))
    }

    /// The server whose turn is next.
    pub(super) fn next_server(&self) -> Option<ServerId> {
        self.ring.front().copied()
    }

    /// Whether a message could be popped, if the admission allows it.
    pub(super) fn has_turns(&self) -> bool {
        !self.ring.is_empty()
    }

    /// Adds an entry after the others of its lane, or by its age among those whose long wait was recorded.
    pub(super) fn push(&mut self, lane: usize, entry: Entry) {
        self.put(lane, entry, EntryQueue::push);
    }

    /// Puts back an entry that was taken and waits again: it comes first in its lane.
    pub(super) fn push_front(&mut self, lane: usize, entry: Entry) {
        self.put(lane, entry, EntryQueue::push_front);
    }

    fn put(&mut self, lane: usize, entry: Entry, push: fn(&mut EntryQueue, Entry)) {
        let server = entry.server_id;
        let server_queue = self.servers.entry(server).or_default();
        let queue = server_queue.lanes.entry(lane).or_default();
        let is_new_lane = queue.entries.is_empty();
        push(&mut queue.entries, entry);
        if is_new_lane {
            queue.in_ring = true;
            server_queue.ring.push_back(lane);
        }
        server_queue.waiting += 1;
        self.waiting += 1;
        self.add_to_ring(server);
    }

    fn add_to_ring(&mut self, server: ServerId) {
        if let Some(server_queue) = self.servers.get_mut(&server)
            && !server_queue.in_ring
            && !server_queue.is_blocked
            && !server_queue.ring.is_empty()
        {
            server_queue.in_ring = true;
            self.ring.push_back(server);
        }
    }

    pub(super) fn pop(&mut self, admission: &mut impl Admission) -> Option<(usize, Entry)> {
        while let Some(server) = self.ring.front().copied() {
            let server_queue = self.servers.get_mut(&server)?;
            if !admission.admits_server(server) {
                (server_queue.in_ring, server_queue.is_blocked) = (false, true);
                self.ring.pop_front();
                continue;
            }
            if server_queue.deficit < 0 && self.ring.len() > 1 {
                server_queue.deficit += 1;
                self.ring.rotate_left(1);
                continue;
            }
            let Some((lane, entry)) = server_queue.pop(server, admission) else {
                // All lanes of the server are blocked; the first readmitted lane returns the server to the ring.
                server_queue.in_ring = false;
                self.ring.pop_front();
                continue;
            };
            self.waiting -= 1;
            self.ring.pop_front();
            if server_queue.waiting == 0 {
                self.servers.remove(&server);
            } else {
                self.ring.push_back(server);
            }
            return Some((lane, entry));
        }
        None
    }

    /// Charges a server for a large message, whose size was not known when it was popped.
    pub(super) fn charge(&mut self, server: ServerId, turns: i64) {
        if let Some(server_queue) = self.servers.get_mut(&server) {
            server_queue.deficit = (server_queue.deficit - turns).max(-COST_MAX);
        }
    }

    pub(super) fn readmit_server(&mut self, server: ServerId) {
        if let Some(server_queue) = self.servers.get_mut(&server) {
            server_queue.is_blocked = false;
        }
        self.add_to_ring(server);
    }

    pub(super) fn readmit_lane(&mut self, lane: usize, server: ServerId) {
        if let Some(server_queue) = self.servers.get_mut(&server)
            && let Some(queue) = server_queue.lanes.get_mut(&lane)
            && !queue.in_ring
        {
            queue.in_ring = true;
            server_queue.ring.push_back(lane);
        }
        self.add_to_ring(server);
    }

    /// Removes all entries of a lane; those of one server keep their order.
    pub(super) fn remove_lane(&mut self, lane: usize) -> Vec<Entry> {
        let mut removed = Vec::new();
        for server_queue in self.servers.values_mut() {
            if let Some(queue) = server_queue.lanes.remove(&lane) {
                server_queue.waiting -= queue.entries.len();
                self.waiting -= queue.entries.len();
                server_queue.ring.retain(|other| *other != lane);
                removed.extend(queue.entries);
            }
        }
        self.drop_empty_queues();
        removed
    }

    /// Removes entries that have waited for long, of lanes and servers for which `is_wanted` is true: at most `limit`,
    /// and `per_lane_max` of each lane of a server.
    pub(super) fn take_late(
        &mut self,
        limit: usize,
        per_lane_max: usize,
        is_wanted: impl Fn(usize, ServerId) -> bool,
        bound: LateBound,
    ) -> Vec<(usize, Entry)> {
        let mut taken = Vec::new();
        for (server, server_queue) in &mut self.servers {
            for (lane, queue) in &mut server_queue.lanes {
                if taken.len() >= limit || !is_wanted(*lane, *server) {
                    continue;
                }
                let late = queue.entries.take_late(per_lane_max.min(limit - taken.len()), bound);
                server_queue.waiting -= late.len();
                self.waiting -= late.len();
                taken.extend(late.into_iter().map(|entry| (*lane, entry)));
            }
            server_queue.lanes.retain(|_, queue| !queue.entries.is_empty());
            let lanes = &server_queue.lanes;
            server_queue.ring.retain(|lane| lanes.contains_key(lane));
        }
        if !taken.is_empty() {
            self.drop_empty_queues();
        }
        taken
    }

    fn drop_empty_queues(&mut self) {
        self.servers.retain(|_, server_queue| server_queue.waiting > 0);
        let servers = &self.servers;
        self.ring
            .retain(|server| servers.get(server).is_some_and(|server_queue| !server_queue.ring.is_empty()));
        for (server, server_queue) in &mut self.servers {
            server_queue.in_ring = self.ring.contains(server);
        }
    }

    /// Removes and returns all entries, each with its lane.
    pub(super) fn drain(&mut self) -> Vec<(usize, Entry)> {
        self.ring.clear();
        self.waiting = 0;
        let lanes = self.servers.drain().flat_map(|(_, server_queue)| server_queue.lanes);
        lanes.flat_map(|(lane, queue)| queue.entries.into_iter().map(move |entry| (lane, entry))).collect()
    }
}

impl ServerQueue {
    fn pop(&mut self, server: ServerId, admission: &mut impl Admission) -> Option<(usize, Entry)> {
        while let Some(lane) = self.ring.pop_front() {
            let queue = self.lanes.get_mut(&lane)?;
            if !admission.admits_lane(lane, server) {
                queue.in_ring = false;
                continue;
            }
            let entry = queue.entries.pop_front()?;
            self.waiting -= 1;
            if queue.entries.is_empty() {
                self.lanes.remove(&lane);
            } else {
                self.ring.push_back(lane);
            }
            let size = entry.loaded_message.as_ref().map_or(0, |loaded_message| loaded_message.size());
            let turns_left = if self.deficit < 0 { self.deficit } else { 1 };
            self.deficit = turns_left - turn_cost(size);
            return Some((lane, entry));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use postroad_model::MessageId;

    use super::*;

    #[derive(Default)]
    struct TestAdmission {
        closed_servers: HashSet<ServerId>,
        closed_lanes: HashSet<usize>,
    }

    impl Admission for TestAdmission {
        fn admits_server(&mut self, server: ServerId) -> bool {
            !self.closed_servers.contains(&server)
        }

        fn admits_lane(&mut self, lane: usize, _: ServerId) -> bool {
            !self.closed_lanes.contains(&lane)
        }
    }

    fn entry(server: i64, message: i64) -> Entry {
        Entry {
            server_id: ServerId(server),
            message_id: MessageId(message),
            due_at: Timestamp::from_micros(0),
            expires_at: None,
            attempts: 0,
            chosen_pool: None,
            source: None,
            greylisting: None,
            delay_notice_at: None,
            was_tried_before_claim: false,
            was_aborted: false,
            is_begun: false,
            loaded_message: None,
        }
    }

    fn pop_all(queue: &mut SiteQueue, admission: &mut TestAdmission) -> Vec<(i64, i64)> {
        std::iter::from_fn(|| queue.pop(admission)).map(|(_, e)| (e.server_id.0, e.message_id.0)).collect()
    }

    #[test]
    fn a_single_message_does_not_wait_behind_a_hundred_thousand_of_another_server() {
        let mut queue = SiteQueue::default();
        (0..100_000).for_each(|id| queue.push(0, entry(1, id)));
        queue.push(0, entry(2, 100_000));
        let mut admission = TestAdmission::default();
        let is_of_small_server = |_: &usize| queue.pop(&mut admission).unwrap().1.server_id == ServerId(2);
        let turns = (1..100_002).find(is_of_small_server).unwrap();
        assert!(turns <= 2, "{turns} turns");
    }

    #[test]
    fn messages_of_a_server_keep_their_order_in_each_lane() {
        let mut queue = SiteQueue::default();
        (0..10).for_each(|id| queue.push((id % 2) as usize, entry(1, id)));
        let order: Vec<_> =
            pop_all(&mut queue, &mut TestAdmission::default()).into_iter().map(|(_, id)| id).collect();
        let lane = |parity| order.iter().copied().filter(|id| id % 2 == parity).collect::<Vec<_>>();
        assert_eq!(lane(0), [0, 2, 4, 6, 8]);
        assert_eq!(lane(1), [1, 3, 5, 7, 9]);
        assert_eq!(queue.count(), 0);
    }

    #[test]
    fn a_blocked_server_does_not_delay_others_and_is_readmitted() {
        let mut queue = SiteQueue::default();
        for id in 0..3 {
            queue.push(0, entry(1, id));
            queue.push(1, entry(2, 10 + id));
        }
        let mut admission = TestAdmission::default();
        admission.closed_servers.insert(ServerId(1));
        assert_eq!(pop_all(&mut queue, &mut admission), [(2, 10), (2, 11), (2, 12)]);
        assert!(!queue.has_turns());
        // New mail of a blocked server does not return it to the ring.
        queue.push(0, entry(1, 3));
        assert!(!queue.has_turns());
        admission.closed_servers.clear();
        queue.readmit_server(ServerId(1));
        assert_eq!(pop_all(&mut queue, &mut admission), [(1, 0), (1, 1), (1, 2), (1, 3)]);
    }

    #[test]
    fn a_blocked_lane_does_not_stop_other_lanes_of_its_server() {
        let mut queue = SiteQueue::default();
        queue.push(0, entry(1, 1));
        queue.push(1, entry(1, 2));
        let mut admission = TestAdmission::default();
        admission.closed_lanes.insert(0);
        assert_eq!(pop_all(&mut queue, &mut admission), [(1, 2)]);
        queue.push(1, entry(1, 3));
        assert_eq!(pop_all(&mut queue, &mut admission), [(1, 3)]);
        queue.push(1, entry(1, 4));
        assert_eq!(queue.count(), 2);
        admission.closed_lanes.clear();
        queue.readmit_lane(0, ServerId(1));
        let mut rest = pop_all(&mut queue, &mut admission);
        rest.sort_unstable();
        assert_eq!(rest, [(1, 1), (1, 4)]);
    }

    #[test]
    fn a_server_that_sent_large_messages_pays_with_turns() {
        let mut queue = SiteQueue::default();
        for id in 0..20 {
            queue.push(0, entry(1, id));
            queue.push(0, entry(2, 100 + id));
        }
        let mut admission = TestAdmission::default();
        let first = queue.pop(&mut admission).unwrap().1.server_id;
        queue.charge(first, 5);
        let next: Vec<_> = (0..5).map(|_| queue.pop(&mut admission).unwrap().1.server_id).collect();
        assert!(next.iter().all(|server| *server != first), "{next:?}");
    }

    #[test]
    fn removing_a_lane_leaves_the_messages_of_other_lanes() {
        let mut queue = SiteQueue::default();
        queue.push(0, entry(1, 1));
        queue.push(1, entry(1, 2));
        queue.push(0, entry(2, 3));
        assert_eq!(queue.remove_lane(0).len(), 2);
        assert_eq!(queue.count(), 1);
        assert_eq!(pop_all(&mut queue, &mut TestAdmission::default()), [(1, 2)]);
    }
}
