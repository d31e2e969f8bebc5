//! Messages that have waited for long without being offered to a host. They get a delivery record with the cause
//! (`message.delayed`); messages that are too old fail, unless they wait for a limit of our own. Suspended messages
//! only wait, whatever else is in their way.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use postroad_model::{GateScope, ServerId, Timestamp};

use super::block::{Block, BlockCause};
use super::entry::LateBound;
use super::lane::{Lane, LaneRoute};
use super::server_gate::ServerGate;
use super::{Entry, LaneKey, Schedule, WaitingLine};

/// In each round of `take_late`, a lane of a server gets at most one in this many of the records. Rounds repeat while
/// there is room, so a lane gets more if no other needs it.
const LANES_PER_ROUND_MIN: usize = 8;

/// A message that has waited for long.
#[derive(Debug)]
pub(crate) struct LateMessage {
    pub(crate) lane: LaneKey,
    pub(crate) entry: Entry,
    pub(crate) block: Block,
}

/// Mail that only waits, because it is suspended.
#[derive(Debug, Default)]
struct SuspendedScopes {
    /// Servers that are suspended, by themselves, with their account or by a gate.
    servers: HashSet<ServerId>,
    /// Lanes that a gate suspends: on the lane, its domain, its pool or all mail.
    lanes: HashSet<usize>,
}

impl SuspendedScopes {
    fn includes(&self, lane: usize, server: ServerId) -> bool {
        self.lanes.contains(&lane) || self.servers.contains(&server)
    }
}

impl Schedule {
    /// Removes at most `limit` messages that have waited for at least `after`: for the DNS, for a site or domain that
    /// accepts nothing, for connections, or for a rate or a warm-up. Lanes and sites are served in rotation.
    /// Messages stay if they are suspended, or if they only wait for their turn.
    pub(crate) fn take_late(&mut self, limit: usize, after: Duration, now: Timestamp) -> Vec<LateMessage> {
        let bound = LateBound::new(after, now);
        let per_lane_max = (limit / LANES_PER_ROUND_MIN).max(1);
        // In the first round each kind of wait gets a third, then all that is left.
        let mut share = limit.div_ceil(3);
        let suspended = &self.suspended_scopes(now);
        let mut late = Vec::new();
        loop {
            let before = late.len();
            let end = |late: &[LateMessage]| limit.min(late.len() + share);
            self.take_late_of_dns(end(&late), per_lane_max, &mut late, bound, suspended);
            self.take_late_of_addresses(end(&late), per_lane_max, &mut late, bound, suspended);
            self.take_late_of_sites(end(&late), per_lane_max, &mut late, bound, suspended);
            if late.len() == before || late.len() >= limit {
                return late;
            }
            share = limit;
        }
    }

    fn take_late_of_sites(
        &mut self,
        limit: usize,
        per_lane_max: usize,
        late: &mut Vec<LateMessage>,
        bound: LateBound,
        suspended: &SuspendedScopes,
    ) {
        let now = bound.now;
        let server_blocks = self.blocks_by_rate(now);
        let has_work = |queue: &super::Queue| queue.waiting.count() > 0 && !queue.route.is_exempt;
        let queues = self.queues.iter().filter(|(_, queue)| has_work(queue)).map(|(id, _)| id);
        for queue in rotated_after(queues.collect(), self.last_late_queue) {
            if late.len() >= limit {
                break;
            }
            let site_block = self.paths_block(queue, now);
            if site_block.is_none() && server_blocks.is_empty() && self.troubled_lanes == 0 {
                continue;
            }
            let lanes = &self.lanes;
            let is_blocked = |lane: usize, server: ServerId| {
                !suspended.includes(lane, server)
                    && (site_block.is_some()
                        || server_blocks.contains_key(&server)
                        || lanes[lane].trouble.is_stopped(server))
            };
            let taken =
                self.queues[queue].waiting.take_late(limit - late.len(), per_lane_max, is_blocked, bound);
            if !taken.is_empty() {
                self.last_late_queue = queue;
            }
            for (lane_id, entry) in taken {
                self.count_out(lane_id, entry.server_id);
                let lane = &self.lanes[lane_id];
                let domain_block = || Block {
                    until: lane.trouble.blocked_until(entry.server_id, now),
                    cause: lane.trouble_cause(now),
                };
                let server_block = server_blocks.get(&entry.server_id);
                let block = site_block.as_ref().or(server_block).cloned().unwrap_or_else(domain_block);
                late.push(LateMessage { lane: lane.key.clone(), entry, block });
            }
        }
    }

    /// Retries that wait for the address of their last attempt.
    fn take_late_of_addresses(
        &mut self,
        limit: usize,
        per_lane_max: usize,
        late: &mut Vec<LateMessage>,
        bound: LateBound,
        suspended: &SuspendedScopes,
    ) {
        let has_sticky = |path: &super::Path| path.sticky_retries.count() > 0;
        let paths: Vec<usize> =
            self.paths.iter().filter(|(_, path)| has_sticky(path)).map(|(id, _)| id).collect();
        let is_unsuspended = |lane: usize, server: ServerId| !suspended.includes(lane, server);
        for path in paths {
            let block = self.path_block(path, bound.now).or_else(|| self.connections_block(path, bound.now));
            let block =
                block.filter(|block| is_reported(&block.cause) && !self.is_path_suspended(path, bound.now));
            let Some(block) = block.filter(|_| late.len() < limit) else { continue };
            let taken = self.paths[path].sticky_retries.take_late(
                limit - late.len(),
                per_lane_max,
                is_unsuspended,
                bound,
            );
            for (lane_id, entry) in taken {
                self.count_out(lane_id, entry.server_id);
                let lane = self.lanes[lane_id].key.clone();
                late.push(LateMessage { lane, entry, block: block.clone() });
            }
        }
    }

    /// Messages to domains without a DNS answer.
    fn take_late_of_dns(
        &mut self,
        limit: usize,
        per_lane_max: usize,
        late: &mut Vec<LateMessage>,
        bound: LateBound,
        suspended: &SuspendedScopes,
    ) {
        let waiting = self.lanes.iter().filter(|(_, lane)| !lane.unrouted.is_empty()).map(|(id, _)| id);
        for id in rotated_after(waiting.collect(), self.last_late_lane) {
            if late.len() >= limit {
                break;
            }
            let lane = &mut self.lanes[id];
            let (until, reason) = match &lane.route {
                LaneRoute::Failed { until, reason } => (Some(*until), Some(reason.clone())),
                _ => (None, None),
            };
            let is_unsuspended = |server: ServerId| !suspended.includes(id, server);
            for entry in
                lane.unrouted.take_late_of(is_unsuspended, per_lane_max.min(limit - late.len()), bound)
            {
                self.last_late_lane = id;
                lane.entry_count -= 1;
                self.memory.remove(entry.server_id);
                let cause = BlockCause::NoAnswer { domain: lane.key.domain.clone(), reason: reason.clone() };
                late.push(LateMessage { lane: lane.key.clone(), entry, block: Block { until, cause } });
            }
        }
    }

    /// Servers that have used up their send rate, or their account's.
    fn blocks_by_rate(&self, now: Timestamp) -> HashMap<ServerId, Block> {
        let blocks =
            self.servers.iter().filter_map(|(id, gate)| Some((*id, gate.block(&self.accounts, now)?)));
        blocks
            .filter(|(_, block)| {
                matches!(block.cause, BlockCause::ServerRate { .. } | BlockCause::AccountRate { .. })
            })
            .collect()
    }

    fn suspended_scopes(&self, now: Timestamp) -> SuspendedScopes {
        let gates = &self.gates;
        let is_stopped = |gate: &ServerGate| gate.is_suspended() || gates.is_suspended(&gate.scope, now);
        let servers = self.servers.iter().filter(|(_, gate)| is_stopped(gate)).map(|(id, _)| *id).collect();
        if gates.is_empty() {
            return SuspendedScopes { servers, ..SuspendedScopes::default() };
        }
        let of_pool = |lane: &Lane| {
            let pool = self.sources.pool_name(lane.key.pool).to_owned();
            [GateScope::Everything, GateScope::Pool(pool)]
        };
        let is_closed =
            |lane: &Lane| gates.is_suspended(&lane.scopes, now) || gates.is_suspended(&of_pool(lane), now);
        let lanes = self.lanes.iter().filter(|(_, lane)| is_closed(lane)).map(|(id, _)| id).collect();
        SuspendedScopes { servers, lanes }
    }

    fn is_path_suspended(&self, path_id: usize, now: Timestamp) -> bool {
        self.gates.is_suspended(&self.paths[path_id].scopes, now)
    }

    /// An obstacle that affects all addresses of a pool, caused by the receiver or by a limit of our own.
    fn paths_block(&mut self, queue: usize, now: Timestamp) -> Option<Block> {
        let mut found = None;
        for path_id in self.queues[queue].paths.clone() {
            if self.paths[path_id].retired {
                continue;
            }
            let block = self.path_block(path_id, now).or_else(|| self.connections_block(path_id, now))?;
            if !is_reported(&block.cause) || self.is_path_suspended(path_id, now) {
                return None;
            }
            found.get_or_insert(block);
        }
        found
    }

    /// All connections that this path may have are busy.
    fn connections_block(&mut self, path_id: usize, now: Timestamp) -> Option<Block> {
        if self.can_take_more(path_id, now) {
            return None;
        }
        let cause = self.connections_cause(path_id, now);
        let is_silent = self.queues[self.paths[path_id].queue].lines.is_only(WaitingLine::Silent);
        let is_limit = matches!(cause, BlockCause::Connections { limit: Some(_), .. });
        (is_limit || is_silent).then_some(Block { until: None, cause })
    }
}

/// Rotates `ids` so that those after `last` come first.
fn rotated_after(ids: Vec<usize>, last: usize) -> Vec<usize> {
    let (before, mut after): (Vec<_>, Vec<_>) = ids.into_iter().partition(|id| *id <= last);
    after.extend(before);
    after
}

/// Whether a path's long wait for this reason is recorded: the receiver or a limit of ours causes it, not a gate or a
/// pause. Waits for servers' rates and for the DNS are found separately.
fn is_reported(cause: &BlockCause) -> bool {
    match cause {
        BlockCause::BackOff { .. }
        | BlockCause::NoConnection { .. }
        | BlockCause::Standstill { .. }
        | BlockCause::TooFast { .. }
        | BlockCause::ProviderRate { .. }
        | BlockCause::Connections { .. }
        | BlockCause::WarmUp { .. } => true,
        BlockCause::Paused(_)
        | BlockCause::Gate(_)
        | BlockCause::ServerSuspended { .. }
        | BlockCause::ServerRate { .. }
        | BlockCause::AccountRate { .. }
        | BlockCause::Dns { .. }
        | BlockCause::NoAnswer { .. } => false,
    }
}
