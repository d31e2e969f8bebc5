//! Lanes: messages for one domain from one pool, and the routing of a domain to its site.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use postroad_model::{GateScope, ServerId, SourceId, Timestamp};

use super::block::{Block, BlockCause};
use super::domain_trouble::DomainTrouble;
use super::entry::{Entry, LaneKey};
use super::entry_queue::EntryQueue;
use super::path::{BackOff, Path};
use super::site_queue::SiteQueue;
use super::wait_cause::SeenBlock;
use super::{Queue, Schedule, WaitingLines, Wake};
use crate::route::Route;

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) key: LaneKey,
    pub(super) scopes: [GateScope; 2],
    pub(super) route: LaneRoute,
    /// Entries that wait for the route.
    pub(super) unrouted: EntryQueue,
    /// Number of entries of this lane, anywhere in the schedule.
    pub(super) entry_count: usize,
    /// Rings (`site_queue.rs`) from which this lane was removed, until it is readmitted: the site queue and server of
    /// each.
    pub(super) removed_from_rings: HashSet<(usize, ServerId)>,
    /// Refusals that are about the domain: by its own policy, or because its mail came too fast.
    pub(super) trouble: DomainTrouble,
    /// The source address from which the domain last accepted a message, and when; only if the pool has several.
    pub(super) accepted_from: Option<(SourceId, Timestamp)>,
    pub(super) last_block: Option<SeenBlock>,
    /// Time of the next wake-up while the lane is removed from rings.
    pub(super) wake_at: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) enum LaneRoute {
    Unknown,
    /// A look-up is in progress. `before` is the queue of the previous site, if there was one.
    Resolving {
        before: Option<usize>,
        /// Whether the DNS answer takes long, so that mail goes to the previous site meanwhile.
        is_slow: bool,
    },
    Known {
        queue: usize,
        until: Timestamp,
    },
    /// The domain has no route, or the DNS gave no answer; the route is looked up again at `until`.
    Failed {
        until: Timestamp,
        reason: String,
    },
}

/// Rank of a look-up; each rank has its own share of concurrent look-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookupRank {
    /// The first look-up of a lane, or a new one for a route that is no longer valid.
    First,
    /// The last look-up failed and left the lane without a route.
    AfterFailure,
}

impl Lane {
    pub(super) fn queue(&self) -> Option<usize> {
        match self.route {
            LaneRoute::Known { queue, .. } => Some(queue),
            LaneRoute::Resolving { before, .. } => before,
            LaneRoute::Unknown | LaneRoute::Failed { .. } => None,
        }
    }

    /// The domain's refusal of our mail, as the cause of a wait.
    pub(super) fn trouble_cause(&self, now: Timestamp) -> BlockCause {
        let (receiver, reason) = (self.key.domain.to_string(), self.trouble.reason());
        BlockCause::Standstill { receiver, since: self.trouble.since().unwrap_or(now), reason }
    }

    pub(super) fn trouble_block(&self, server: ServerId, now: Timestamp) -> Option<Block> {
        let until = self.trouble.blocked_until(server, now)?;
        Some(Block { until: Some(until), cause: self.trouble_cause(now) })
    }

    /// Whether the lane has no refusals to remember, only a route, which can be looked up again.
    pub(super) fn is_forgettable(&self) -> bool {
        matches!(self.route, LaneRoute::Known { .. }) && self.trouble.is_clear()
    }

    /// Whether a wake-up at this time is still valid; otherwise an earlier one has replaced it.
    pub(super) fn is_woken_at(&self, at: Timestamp) -> bool {
        self.wake_at == Some(at) || matches!(self.route, LaneRoute::Failed { until, .. } if until == at)
    }

    /// Whether the lane's route is unknown or no longer valid.
    pub(super) fn is_stale(&self, now: Timestamp) -> bool {
        match self.route {
            LaneRoute::Unknown => true,
            LaneRoute::Resolving { .. } => false,
            LaneRoute::Known { until, .. } | LaneRoute::Failed { until, .. } => until <= now,
        }
    }
}

impl Schedule {
    pub(super) fn find_or_add_lane(&mut self, key: LaneKey) -> usize {
        if let Some(id) = self.lane_ids.get(&key) {
            return *id;
        }
        let pool = self.sources.pool_name(key.pool).to_owned();
        let scopes =
            [GateScope::Domain(key.domain.clone()), GateScope::Lane { pool, domain: key.domain.clone() }];
        let id = self.lanes.insert(Lane {
            key: key.clone(),
            scopes,
            route: LaneRoute::Unknown,
            unrouted: EntryQueue::default(),
            entry_count: 0,
            removed_from_rings: HashSet::new(),
            trouble: DomainTrouble::default(),
            accepted_from: None,
            last_block: None,
            wake_at: None,
        });
        self.lane_ids.insert(key, id);
        id
    }

    /// Puts a due entry into its site's queue, or first requests a look-up of its route.
    pub(super) fn enqueue(&mut self, lane_id: usize, entry: Entry, now: Timestamp) {
        let lane = &mut self.lanes[lane_id];
        if self.sources.of_pool(lane.key.pool).next().is_none() {
            // The pool lost its last address: another pool takes the entry.
            let key = lane.key.clone();
            self.count_out(lane_id, entry.server_id);
            return self.add_due(key.domain, key.require_tls, entry, now);
        }
        match lane.route {
            LaneRoute::Known { queue, until } if until > now => {
                self.queues[queue].waiting.push(lane_id, entry);
                self.pump(queue, now);
            }
            LaneRoute::Resolving { before: Some(queue), is_slow: true } => {
                self.queues[queue].waiting.push(lane_id, entry);
                self.pump(queue, now);
            }
            LaneRoute::Failed { until, .. } if until > now => lane.unrouted.push(entry),
            _ => {
                let server = entry.server_id;
                lane.unrouted.push(entry);
                self.resolve(lane_id, Some(server));
            }
        }
    }

    /// Requests a look-up of the route. `server` owns the message that was just added, if there is one.
    fn resolve(&mut self, lane_id: usize, server: Option<ServerId>) {
        let lane = &mut self.lanes[lane_id];
        if self.is_stopping {
            return;
        }
        if matches!(lane.route, LaneRoute::Resolving { .. }) {
            if let Some(server) = server {
                self.join_lookup(lane_id, server);
            }
            return;
        }
        let rank = if matches!(lane.route, LaneRoute::Failed { .. }) {
            LookupRank::AfterFailure
        } else {
            LookupRank::First
        };
        lane.route = LaneRoute::Resolving { before: lane.queue(), is_slow: false };
        self.begin_lookup(lane_id, rank);
    }

    /// The route is known: all waiting entries move to the site's queue, also entries in the queue of the previous
    /// site.
    pub(crate) fn on_resolved(&mut self, lane_id: usize, route: Route, now: Timestamp) {
        self.end_lookup(lane_id);
        let Some(lane) = self.lanes.get(lane_id) else { return };
        let (pool, until, before) = (lane.key.pool, route.valid_until, lane.queue());
        let queue = self.find_or_add_queue(pool, Arc::new(route));
        if let Some(before) = before.filter(|before| *before != queue) {
            let moved = self.queues[before].waiting.remove_lane(lane_id);
            for entry in moved {
                self.queues[queue].waiting.push(lane_id, entry);
            }
        }
        self.enter_queue(lane_id, queue, until, now);
    }

    /// Makes `queue` the lane's route until `until`, and moves entries without a route there.
    fn enter_queue(&mut self, lane_id: usize, queue: usize, until: Timestamp, now: Timestamp) {
        let lane = &mut self.lanes[lane_id];
        lane.route = LaneRoute::Known { queue, until };
        if !lane.unrouted.is_empty() {
            let cause = BlockCause::Dns { domain: lane.key.domain.clone() };
            lane.last_block = Some(SeenBlock::new(cause, now));
        }
        for entry in std::mem::take(&mut lane.unrouted) {
            self.queues[queue].waiting.push(lane_id, entry);
        }
        self.overflow_queue(queue, now);
        self.pump(queue, now);
    }

    /// There is no route, at least not now: the lane is looked up again at `until`. If only the DNS failed, the
    /// previous site stays in use. Returns whether it stays in use, or the lane no longer exists.
    pub(crate) fn on_unresolved(
        &mut self,
        lane_id: usize,
        until: Timestamp,
        reason: String,
        is_final: bool,
        now: Timestamp,
    ) -> bool {
        self.end_lookup(lane_id);
        let Some(lane) = self.lanes.get_mut(lane_id) else { return true };
        match lane.queue() {
            Some(before) if !is_final => {
                self.enter_queue(lane_id, before, until, now);
                return true;
            }
            Some(before) => {
                let waiting = self.queues[before].waiting.remove_lane(lane_id);
                self.lanes[lane_id].unrouted.extend(waiting);
            }
            None => {}
        }
        self.lanes[lane_id].route = LaneRoute::Failed { until, reason };
        self.wake_at(until, Wake::Lane(lane_id));
        false
    }

    /// Removes messages that wait for a route from the schedule, to be settled as unroutable.
    pub(crate) fn take_unrouted(&mut self, key: &LaneKey, limit: usize) -> Vec<Entry> {
        let Some(id) = self.lane_ids.get(key).copied() else { return Vec::new() };
        let taken: Vec<Entry> = self.lanes[id].unrouted.take_first(limit).collect();
        for entry in &taken {
            self.count_out(id, entry.server_id);
        }
        taken
    }

    pub(super) fn wake_lane(&mut self, lane_id: usize, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(lane_id) else { return };
        lane.wake_at = None;
        let removed_from_rings = std::mem::take(&mut lane.removed_from_rings);
        if let Some(block) = lane.last_block.as_mut().filter(|_| !removed_from_rings.is_empty()) {
            block.end(now);
        }
        let is_ready = match &lane.route {
            LaneRoute::Failed { until, .. } => *until <= now,
            LaneRoute::Unknown => true,
            _ => false,
        };
        if is_ready && !lane.unrouted.is_empty() {
            self.resolve(lane_id, None);
        }
        for (queue, server) in removed_from_rings {
            if let Some(state) = self.queues.get_mut(queue) {
                state.waiting.readmit_lane(lane_id, server);
                self.pump(queue, now);
            }
        }
    }

    fn find_or_add_queue(&mut self, pool: postroad_model::PoolId, route: Arc<Route>) -> usize {
        let key = (pool, Arc::clone(&route.secured_site));
        let queues = &mut self.queues;
        let id = *self.queue_ids.entry(key).or_insert_with(|| {
            let (waiting, paths) = (SiteQueue::default(), Vec::new());
            queues.insert(Queue {
                pool,
                route: Arc::clone(&route),
                waiting,
                paths,
                wake_at: None,
                lines: WaitingLines::default(),
                last_block: None,
            })
        });
        self.queues[id].route = route;
        self.refresh_paths(id);
        id
    }

    /// Gives the queue one path for each address of its pool. Paths of addresses that left the pool are retired.
    pub(super) fn refresh_paths(&mut self, queue_id: usize) {
        let (pool, route) = (self.queues[queue_id].pool, Arc::clone(&self.queues[queue_id].route));
        let sources: Vec<(SourceId, IpAddr)> =
            self.sources.of_pool(pool).map(|source| (source.id, source.scope_address())).collect();
        for path in &self.queues[queue_id].paths {
            let path = &mut self.paths[*path];
            path.retired = !sources.iter().any(|(source, _)| *source == path.source);
        }
        // A new path starts level with the path that is furthest behind.
        let others = self.queues[queue_id].paths.iter().map(|path| self.paths[*path].progress);
        let progress = others.fold(f64::INFINITY, f64::min);
        let progress = if progress.is_finite() { progress } else { 0.0 };
        for (source, address) in sources {
            let key = (source, Arc::clone(&route.secured_site));
            if self.path_ids.contains_key(&key) {
                continue;
            }
            let source_site_key = (source, Arc::clone(&route.site));
            let known = self.source_site_ids.get(&source_site_key).copied();
            let source_site = known.unwrap_or_else(|| {
                let source_site = self.source_sites.insert(self.remembered_source_site(address, &route.site));
                self.source_site_ids.insert(source_site_key, source_site);
                source_site
            });
            let slow_start = route.rules.slow_start_connections;
            let id = self.paths.insert(Path {
                source,
                queue: queue_id,
                source_site,
                secured_site: Arc::clone(&route.secured_site),
                scopes: path_scopes(self.sources.pool_name(pool), address, &route),
                connections: 0,
                attempts: Vec::new(),
                carried_server: None,
                idle: 0,
                notified: 0,
                starting: 0,
                ramp: slow_start.max(1),
                back_off: BackOff::default(),
                reached_at: None,
                progress,
                taken_at: None,
                last_request_at: None,
                lacks_room_since: None,
                sticky_retries: SiteQueue::default(),
                last_block: None,
                took_sticky: false,
                retired: false,
            });
            self.source_sites[source_site].paths.push(id);
            self.path_ids.insert(key, id);
            self.queues[queue_id].paths.push(id);
        }
    }
}

/// Scopes of gates that apply to a path; none at the simulator, which is exempt.
fn path_scopes(pool: &str, source: IpAddr, route: &Route) -> Vec<GateScope> {
    if route.is_exempt {
        return Vec::new();
    }
    vec![
        GateScope::Everything,
        GateScope::Pool(pool.to_owned()),
        GateScope::Provider(route.provider.to_string()),
        GateScope::SourceProvider { source, provider: route.provider.to_string() },
        GateScope::Path { source, site: route.site.to_string() },
    ]
}
