//! Route look-ups. Servers take turns, and domains whose last look-up failed have a separate share: the first look-up
//! of a domain never waits for look-ups of such domains.

use std::collections::{HashMap, HashSet};

use postroad_model::{ServerId, Timestamp};

use super::lane::{Lane, LaneRoute, LookupRank};
use super::{Action, Schedule};
use crate::turns::Turns;

/// Maximum number of concurrent look-ups of rank `First`. A look-up that is not answered soon frees its permit for
/// the next one.
const FIRST_MAX: u32 = 512;
/// Maximum number of concurrent look-ups of rank `AfterFailure`.
const AFTER_FAILURE_MAX: u32 = 256;

#[derive(Debug, Default)]
pub(super) struct Lookups {
    first: LookupShare,
    after_failure: LookupShare,
    /// Lanes whose look-up holds a permit.
    permitted: HashMap<usize, LookupRank>,
    /// Lanes that wait for a permit, with the servers that have mail for them. Each server waits for its own turn; the
    /// first turn serves all.
    waiting: HashMap<usize, (LookupRank, HashSet<ServerId>)>,
}

#[derive(Debug, Default)]
struct LookupShare {
    running: u32,
    waiting: Turns<ServerId, usize>,
}

impl Lookups {
    fn share(&mut self, rank: LookupRank) -> (&mut LookupShare, u32) {
        match rank {
            LookupRank::First => (&mut self.first, FIRST_MAX),
            LookupRank::AfterFailure => (&mut self.after_failure, AFTER_FAILURE_MAX),
        }
    }

    /// Returns whether the look-up may begin; otherwise it waits for its turn.
    fn begin(&mut self, lane: usize, server: ServerId, rank: LookupRank) -> bool {
        let (share, max) = self.share(rank);
        if share.running >= max {
            share.waiting.push(server, lane);
            self.waiting.insert(lane, (rank, HashSet::from([server])));
            return false;
        }
        share.running += 1;
        self.permitted.insert(lane, rank);
        true
    }

    /// Adds a server with mail for a lane whose look-up may still wait for a permit.
    fn join(&mut self, lane: usize, server: ServerId) {
        let Some((rank, servers)) = self.waiting.get_mut(&lane) else { return };
        let rank = *rank;
        if servers.insert(server) {
            self.share(rank).0.waiting.push(server, lane);
        }
    }

    /// Frees the permit of a look-up. Returns the lane to look up next, and the server whose turn that uses.
    fn end(&mut self, lane: usize) -> Option<(usize, ServerId)> {
        let rank = self.permitted.remove(&lane)?;
        loop {
            let Some((server, next)) = self.share(rank).0.waiting.pop_with_key() else {
                self.share(rank).0.running -= 1;
                return None;
            };
            // The lane may have been looked up already, in another server's turn.
            if self.waiting.remove(&next).is_some() {
                self.permitted.insert(next, rank);
                return Some((next, server));
            }
        }
    }
}

impl Schedule {
    pub(super) fn begin_lookup(&mut self, lane_id: usize, rank: LookupRank) {
        let server = self.lanes[lane_id].first_server();
        if self.lookups.begin(lane_id, server, rank) {
            self.request_lookup(lane_id, server);
        }
    }

    /// A message of this server waits for a look-up that was requested for another server.
    pub(super) fn join_lookup(&mut self, lane_id: usize, server: ServerId) {
        self.lookups.join(lane_id, server);
    }

    fn request_lookup(&mut self, lane_id: usize, server: ServerId) {
        if let Some(lane) = self.lanes.get(lane_id) {
            let key = lane.key.clone();
            self.actions.push(Action::Resolve { lane: lane_id, key, server });
        }
    }

    pub(super) fn end_lookup(&mut self, lane_id: usize) {
        if let Some((next, server)) = self.lookups.end(lane_id) {
            self.request_lookup(next, server);
        }
    }

    /// A look-up takes long: the next one may begin, and the previous site stays in use meanwhile.
    pub(crate) fn on_slow_lookup(&mut self, lane_id: usize, now: Timestamp) {
        self.end_lookup(lane_id);
        let Some(lane) = self.lanes.get_mut(lane_id) else { return };
        let LaneRoute::Resolving { before: Some(queue), is_slow } = &mut lane.route else { return };
        *is_slow = true;
        let queue = *queue;
        for entry in std::mem::take(&mut lane.unrouted) {
            self.queues[queue].waiting.push(lane_id, entry);
        }
        self.pump(queue, now);
    }
}

impl Lane {
    /// The server whose mail has waited longest for the look-up.
    fn first_server(&self) -> ServerId {
        self.unrouted.front().map_or(ServerId(0), |entry| entry.server_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lookups_do_not_wait_for_domains_that_failed_before() {
        let mut lookups = Lookups::default();
        let failed_before = |lane: usize| 1_000 + lane;
        for lane in 0..AFTER_FAILURE_MAX as usize {
            assert!(lookups.begin(failed_before(lane), ServerId(1), LookupRank::AfterFailure));
        }
        assert!(!lookups.begin(failed_before(9_000), ServerId(1), LookupRank::AfterFailure));
        assert!(lookups.begin(1, ServerId(1), LookupRank::First));
        assert_eq!(lookups.end(failed_before(3)), Some((failed_before(9_000), ServerId(1))));
        assert_eq!(lookups.end(1), None);
        assert_eq!(lookups.end(1), None, "a second end of the same look-up frees nothing");
        assert_eq!((lookups.first.running, lookups.after_failure.running), (0, AFTER_FAILURE_MAX));
    }

    #[test]
    fn servers_take_turns_at_lookups() {
        let mut lookups = Lookups::default();
        for lane in 0..5_000 {
            lookups.begin(lane, ServerId(1), LookupRank::First);
        }
        assert!(!lookups.begin(7_777, ServerId(2), LookupRank::First));
        let next: Vec<_> = (0..2).filter_map(|lane| lookups.end(lane)).collect();
        assert_eq!(next, [(FIRST_MAX as usize, ServerId(1)), (7_777, ServerId(2))]);
    }

    #[test]
    fn a_domain_that_two_servers_wait_for_has_the_turns_of_both() {
        let mut lookups = Lookups::default();
        for lane in 0..5_000 {
            lookups.begin(lane, ServerId(1), LookupRank::First);
        }
        // Lane 4,999 is the last one in the queue of the first server.
        lookups.join(4_999, ServerId(2));
        lookups.join(4_999, ServerId(2));
        lookups.join(3, ServerId(2));
        let next: Vec<_> = (0..3).filter_map(|lane| lookups.end(lane)).collect();
        let first = FIRST_MAX as usize;
        assert_eq!(next, [(first, ServerId(1)), (4_999, ServerId(2)), (first + 1, ServerId(1))]);
        let rest: Vec<_> = (3..first).chain(first..4_999).filter_map(|lane| lookups.end(lane)).collect();
        assert!(rest.iter().all(|(lane, _)| *lane != 4_999), "a lane is looked up once");
        assert_eq!(lookups.end(4_999), None);
        assert!(lookups.waiting.is_empty() && lookups.permitted.is_empty() && lookups.first.running == 0);
    }
}
