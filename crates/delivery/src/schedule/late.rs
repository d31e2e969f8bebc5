//! Messages that have waited for more than five minutes without being offered. They get a delivery record with the cause
//! (`message.delayed`); those that are too old fail, unless they wait for a limit of ours.

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
        self.tell_at.unwrap_or_else(|| self.due_at.plus(LATE_AFTER)) <= now
    }
}

impl Schedule {
    /// Takes out those that wait for the DNS, for a site or a domain that takes nothing, for its connections, or for a rate or
    /// a warm-up, at most so many. What an operator keeps back, and what only waits for its turn, stays untouched.
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
                let lane = &mut self.lanes[lane_id];
                lane.entries -= 1;
                let of_domain = || Block {
                    until: lane.trouble.blocked_until(entry.server_id, now),
                    why: lane.trouble_cause(now),
                };
                let of_server = of_servers.get(&entry.server_id);
                let block = of_site.as_ref().or(of_server).cloned().unwrap_or_else(of_domain);
                late.push(Late { lane: lane.key.clone(), entry, block });
            }
        }
        late
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

    /// Block by the receiver, or by a limit of ours, that affects all addresses of a pool.
    fn paths_block(&mut self, queue: usize, now: Timestamp) -> Option<Block> {
        let mut found = None;
        for path_id in self.queues[queue].paths.clone() {
            if self.paths[path_id].retired {
                continue;
            }
            let block = self.path_block(path_id, now)?;
            let is_meant = match block.why {
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
            };
            if !is_meant {
                return None;
            }
            found.get_or_insert(block);
        }
        found
    }
}
