//! Messages that have waited for more than five minutes without being offered. They get a delivery record with the
//! cause (`message.delayed`); those that are too old fail, unless they wait for our own limit.

use std::collections::HashMap;
use std::time::Duration;

use postroad_model::{ServerId, Timestamp};

use super::block::{Block, Why};
use super::lane::LaneRoute;
use super::{Entry, LaneKey, Schedule};

/// Shorter waits are not reported.
const LATE_AFTER: Duration = Duration::from_mins(5);

/// A message that has waited for long.
#[derive(Debug)]
pub(crate) struct Late {
    pub(crate) lane: LaneKey,
    pub(crate) entry: Entry,
    pub(crate) block: Block,
}

impl Entry {
    fn is_late(&self, now: Timestamp) -> bool {
        self.announce_at.unwrap_or_else(|| self.due_at.plus(LATE_AFTER)) <= now
    }
}

impl Schedule {
    /// Removes messages that wait for the DNS, for a site or domain that accepts nothing, for its connections, or for a
    /// rate or a warm-up; at most `limit`. Messages that an operator blocks, or that only wait for their turn, stay.
    pub(crate) fn take_late(&mut self, limit: usize, now: Timestamp) -> Vec<Late> {
        let mut late = self.take_unanswered(limit, now);
        let of_servers = self.server_rates(now);
        let has_work = |queue: &super::Queue| queue.waiting.waiting() > 0 && !queue.route.is_exempt;
        let queues: Vec<usize> =
            self.queues.iter().filter(|(_, queue)| has_work(queue)).map(|(id, _)| id).collect();
        for queue in queues {
            if late.len() >= limit {
                break;
            }
            let of_site = self.paths_block(queue, now);
            if of_site.is_none() && of_servers.is_empty() && self.troubled_lanes == 0 {
                continue;
            }
            let lanes = &self.lanes;
            let is_meant = |lane: usize, entry: &Entry| {
                let is_blocked = of_site.is_some()
                    || of_servers.contains_key(&entry.server_id)
                    || lanes[lane].trouble.is_standing(entry.server_id);
                is_blocked && entry.is_late(now)
            };
            let taken = self.queues[queue].waiting.take_if(limit - late.len(), is_meant);
            for (lane_id, entry) in taken {
                self.count_out(lane_id, entry.server_id);
                let lane = &self.lanes[lane_id];
                let of_domain = || Block {
                    until: lane.trouble.blocked_until(entry.server_id, now),
                    why: lane.trouble_cause(now),
                };
                let of_server = of_servers.get(&entry.server_id);
                let block = of_site.as_ref().or(of_server).cloned().unwrap_or_else(of_domain);
                late.push(Late { lane: lane.key.clone(), entry, block });
            }
        }
        self.take_late_of_addresses(limit, &mut late, now);
        late
    }

    /// Retries that wait for the address of their last attempt.
    fn take_late_of_addresses(&mut self, limit: usize, late: &mut Vec<Late>, now: Timestamp) {
        let has_kept = |path: &super::Path| path.kept.waiting() > 0;
        let paths: Vec<usize> =
            self.paths.iter().filter(|(_, path)| has_kept(path)).map(|(id, _)| id).collect();
        for path in paths {
            let block = self.path_block(path, now).filter(|block| is_told_of(&block.why));
            let Some(block) = block.filter(|_| late.len() < limit) else { continue };
            let taken = self.paths[path].kept.take_if(limit - late.len(), |_, entry| entry.is_late(now));
            for (lane_id, entry) in taken {
                self.count_out(lane_id, entry.server_id);
                let lane = self.lanes[lane_id].key.clone();
                late.push(Late { lane, entry, block: block.clone() });
            }
        }
    }

    /// Those whose domains the DNS says nothing of.
    fn take_unanswered(&mut self, limit: usize, now: Timestamp) -> Vec<Late> {
        let mut late = Vec::new();
        for (_, lane) in &mut self.lanes {
            let (until, reason) = match &lane.route {
                LaneRoute::Failed { until, reason } => (Some(*until), Some(reason.clone())),
                _ => (None, None),
            };
            while late.len() < limit
                && let Some(entry) = lane.unrouted.pop_front_if(|entry| entry.is_late(now))
            {
                lane.entries -= 1;
                self.room.remove(entry.server_id);
                let why = Why::NoAnswer { domain: lane.key.domain.clone(), reason: reason.clone() };
                late.push(Late { lane: lane.key.clone(), entry, block: Block { until, why } });
            }
        }
        late
    }

    /// Servers that have used up their send rate, or their account's.
    fn server_rates(&self, now: Timestamp) -> HashMap<ServerId, Block> {
        let blocks =
            self.servers.iter().filter_map(|(id, gate)| Some((*id, gate.block(&self.accounts, now)?)));
        blocks
            .filter(|(_, block)| matches!(block.why, Why::ServerRate { .. } | Why::AccountRate { .. }))
            .collect()
    }

    /// An obstacle, by the receiver or by our own limit, that affects all addresses of a pool.
    fn paths_block(&mut self, queue: usize, now: Timestamp) -> Option<Block> {
        let mut found = None;
        for path_id in self.queues[queue].paths.clone() {
            if self.paths[path_id].retired {
                continue;
            }
            let block = self.path_block(path_id, now)?;
            if !is_told_of(&block.why) {
                return None;
            }
            found.get_or_insert(block);
        }
        found
    }
}

/// Whether messages that wait for this are told of it: the receiver's, or a limit of ours.
fn is_told_of(why: &Why) -> bool {
    match why {
        Why::BackOff { .. }
        | Why::NoConnection { .. }
        | Why::Standstill { .. }
        | Why::TooFast { .. }
        | Why::ProviderRate { .. }
        | Why::Connections { .. }
        | Why::WarmUp { .. } => true,
        Why::Paused(_)
        | Why::Gate(_)
        | Why::ServerSuspended { .. }
        | Why::ServerRate { .. }
        | Why::AccountRate { .. }
        | Why::Dns { .. }
        | Why::NoAnswer { .. } => false,
    }
}
