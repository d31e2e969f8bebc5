//! The schedule: which messages are sent, where, and in which order. Pure data and decisions: time is an argument,
//! and work outside (resolve a domain; open, wake or abort a connection) is returned as actions.
//!
//! A message moves: timeline (not due) → lane (its domain's route is not known) → site queue (waits for its turn) →
//! job (a connection has it).

mod account_pace;
mod attempts;
pub(crate) mod block;
mod clock_back;
mod configure;
mod connection_reports;
#[cfg(test)]
mod connection_share_tests;
mod connection_shares;
mod credit;
mod domain_trouble;
mod entry;
mod entry_queue;
mod even_pace;
mod explain;
mod gates;
mod lane;
mod late;
mod lookups;
mod memory_share;
mod one_server;
mod pacing_notes;
mod parking;
mod path;
mod pull;
#[cfg(test)]
mod receivers;
mod replies;
mod server_gate;
mod shares;
mod site_queue;
mod sources;
mod sticky_source;
#[cfg(test)]
mod tests;
mod timeline;
mod wait_cause;
mod wakes;
pub(crate) mod warm_up;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{DomainName, PoolId, ServerId, SourceId, Timestamp};
use postroad_store::DeliverySetup;
use slab::Slab;

pub(crate) use block::{Block, PauseCause};
pub(crate) use connection_reports::EndedWhile;
pub(crate) use connection_shares::Shortage;
pub(crate) use entry::{Entry, Greylisting, LaneKey};
pub use explain::{PathTotals, Totals};
pub(crate) use late::LateMessage;
pub(crate) use memory_share::IntakeLimits;
pub(crate) use pull::{Job, Next, WorkRequest};
pub(crate) use replies::{Reaction, RefusalReply};
pub(crate) use site_queue::turn_cost;
pub(crate) use sources::{CountedSource, Source};

use crate::pacing::{ConnectionEstimate, Evidence, GreylistTime, RateEstimate, Standstill};
use crate::route::Route;
use account_pace::AccountPaces;
use connection_shares::{ConnectionShares, Health, WaitingLine, WaitingLines};
use even_pace::EvenPace;
use gates::GateTable;
use lane::{Lane, LaneRoute};
use lookups::Lookups;
use memory_share::MemoryLimit;
use path::Path;
use server_gate::ServerGate;
use shares::Shares;
use site_queue::SiteQueue;
use sources::Sources;
use timeline::Timeline;
use wait_cause::SeenBlock;
use wakes::Wake;
use warm_up::WarmUpPlan;

/// If a server with a rate could not use its turn at one site, its next turn elsewhere comes after this time.
const NEXT_TURN_AFTER: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct Schedule {
    /// Pauses of the retry schedule; paths also use them to back off.
    pauses: Vec<Duration>,
    timeline: Timeline,
    lanes: Slab<Lane>,
    lane_ids: HashMap<LaneKey, usize>,
    queues: Slab<Queue>,
    /// By pool and secured site.
    queue_ids: HashMap<(PoolId, Arc<str>), usize>,
    paths: Slab<Path>,
    /// By source and secured site.
    path_ids: HashMap<(SourceId, Arc<str>), usize>,
    /// State of each (source, site), whatever security is required.
    source_sites: Slab<SourceSite>,
    source_site_ids: HashMap<(SourceId, Arc<str>), usize>,
    /// State of each (source, provider).
    source_providers: HashMap<(SourceId, Arc<str>), SourceProvider>,
    /// Lanes with a refusal since their last acceptance.
    troubled_lanes: usize,
    pacing_notes: pacing_notes::PacingNotes,
    servers: HashMap<ServerId, ServerGate>,
    accounts: AccountPaces,
    sources: Sources,
    /// Shares of the addresses of a pool in its messages, by weight.
    shares: Shares,
    gates: GateTable,
    /// The setup as last read, without servers and counts.
    setup: Option<DeliverySetup>,
    wakes: BinaryHeap<Reverse<(Timestamp, Wake)>>,
    /// Time of the scheduled wake-up for the end of a gate.
    gates_wake_at: Option<Timestamp>,
    /// Connections of all paths together, without parked ones.
    connections: u32,
    /// Connections that only wait for a late final reply (`parking.rs`).
    parked_connections: u32,
    connections_max: u32,
    /// Shares of the node's connections for new and silent sites.
    connection_shares: ConnectionShares,
    lookups: Lookups,
    memory: MemoryLimit,
    actions: Vec<Action>,
    expired: Vec<Entry>,
    /// The queue whose long waits were recorded last.
    last_late_queue: usize,
    /// The lane without a DNS answer whose long waits were recorded last.
    last_late_lane: usize,
    /// Why nothing is sent at all.
    paused: BTreeMap<PauseCause, String>,
    is_stopping: bool,
}

/// Queue of one secured site and pool, with the paths that serve it.
#[derive(Debug)]
struct Queue {
    pool: PoolId,
    route: Arc<Route>,
    waiting: SiteQueue,
    paths: Vec<usize>,
    /// Time of the queue's next wake-up.
    wake_at: Option<Timestamp>,
    /// Lines in which the queue waits for a connection.
    lines: WaitingLines,
    last_block: Option<SeenBlock>,
}

/// One source address at one set of hosts, whatever security is required; its paths share these numbers.
#[derive(Debug, Default)]
struct SourceSite {
    /// Connection tasks.
    connections: u32,
    /// Number of these tasks that have had a connection that accepts messages.
    open: u32,
    /// The paths that share these connections.
    paths: Vec<usize>,
    health: Health,
    /// When the site last replied to a message.
    replied_at: Option<Timestamp>,
    /// Time that the site's host took to greet the last connection.
    greeted_after: Duration,
    connection_limit: ConnectionEstimate,
    rate: RateEstimate,
    standstill: Standstill,
    /// Recipient domains that refused mail for reputation, policy or content.
    refusing_domains: Evidence,
    /// Recipient domains whose mail was refused as too fast for the domain.
    too_fast_domains: Evidence,
    domains: replies::SeenDomains,
    greylist: GreylistTime,
    /// Time of the last reply that changed the estimates.
    evidence_at: Option<Timestamp>,
    /// The estimates stored or restored last, and when they were learned.
    saved_estimates: Option<(pacing_notes::PacingEstimates, Timestamp)>,
}

/// One source at one provider, over all of its sites.
#[derive(Debug)]
struct SourceProvider {
    /// Whether the provider may have several sites, because it has its own rules. Then evidence from several of them
    /// applies to all.
    has_several_sites: bool,
    /// Rate of messages by the provider's rules.
    limit: Option<EvenPace>,
    connections: u32,
    /// When a message was last taken for sending.
    taken_at: Option<Timestamp>,
    /// Rate of new connections by the provider's rules.
    openings: Option<EvenPace>,
    rate: RateEstimate,
    standstill: Standstill,
    /// Sites that refused mail as too fast.
    too_fast_sites: Evidence,
    /// Sites at a standstill.
    refusing_sites: Evidence,
    /// Recipient domains that refused mail for reputation, at any of the provider's sites.
    refusing_domains: Evidence,
    /// The estimate stored or restored last, and when it was learned.
    saved_estimates: Option<(pacing_notes::PacingEstimates, Timestamp)>,
}

/// Work for the engine, outside of the schedule.
#[derive(Debug)]
pub(crate) enum Action {
    Resolve {
        lane: usize,
        key: LaneKey,
        /// The server whose turn the look-up uses.
        server: ServerId,
    },
    Open {
        path: usize,
        attempt: u64,
    },
    Wake {
        path: usize,
    },
    /// Aborts an attempt to connect, because other sites or servers need the connection.
    AbortAttempt {
        attempt: u64,
    },
}

impl Schedule {
    pub(crate) fn new(
        pauses: Vec<Duration>,
        helo: String,
        plan: WarmUpPlan,
        connections_max: u32,
        messages_max: usize,
    ) -> Self {
        Self {
            pauses,
            timeline: Timeline::default(),
            lanes: Slab::new(),
            lane_ids: HashMap::new(),
            queues: Slab::new(),
            queue_ids: HashMap::new(),
            paths: Slab::new(),
            path_ids: HashMap::new(),
            source_sites: Slab::new(),
            source_site_ids: HashMap::new(),
            source_providers: HashMap::new(),
            troubled_lanes: 0,
            pacing_notes: pacing_notes::PacingNotes::default(),
            servers: HashMap::new(),
            accounts: AccountPaces::default(),
            sources: Sources::new(helo, plan),
            shares: Shares::default(),
            gates: GateTable::default(),
            setup: None,
            wakes: BinaryHeap::new(),
            gates_wake_at: None,
            connections: 0,
            parked_connections: 0,
            connections_max,
            connection_shares: ConnectionShares::new(connections_max),
            lookups: Lookups::default(),
            memory: MemoryLimit::new(messages_max),
            actions: Vec::new(),
            expired: Vec::new(),
            last_late_queue: 0,
            last_late_lane: 0,
            paused: BTreeMap::new(),
            is_stopping: false,
        }
    }

    /// Adds a message to be sent: now, or when it is due.
    pub(crate) fn add(&mut self, domain: DomainName, require_tls: bool, entry: Entry, now: Timestamp) {
        if entry.due_at > now {
            let lane = self.lane_of(domain, require_tls, &entry);
            self.timeline.push(lane, entry);
        } else {
            self.add_due(domain, require_tls, entry, now);
        }
    }

    /// Adds a message to be sent now, even if its due time is in the future because the clock went back.
    pub(crate) fn add_due(&mut self, domain: DomainName, require_tls: bool, entry: Entry, now: Timestamp) {
        let lane = self.lane_of(domain, require_tls, &entry);
        self.enqueue(lane, entry, now);
    }

    fn lane_of(&mut self, domain: DomainName, require_tls: bool, entry: &Entry) -> usize {
        let server_pool = self.servers.get(&entry.server_id).and_then(|server| server.chosen_pool);
        let pool = self.sources.choose_pool(entry.chosen_pool, server_pool, entry.source);
        let key = LaneKey { pool, domain, require_tls };
        let mut lane = self.find_or_add_lane(key.clone());
        if let Some(pool) = self.overflow_of(lane) {
            lane = self.find_or_add_lane(LaneKey { pool, ..key });
        }
        self.count_in(lane, entry.server_id);
        lane
    }

    /// Puts back a message that a connection took; the message waits again, without a failed attempt. It comes first in
    /// its lane, if the lane's route is known.
    pub(crate) fn put_back(&mut self, key: LaneKey, entry: Entry, now: Timestamp) {
        let lane = self.find_or_add_lane(key);
        self.count_in(lane, entry.server_id);
        match self.lanes[lane].route {
            LaneRoute::Known { queue, .. } => {
                self.queues[queue].waiting.push_front(lane, entry);
                self.pump(queue, now);
            }
            _ => self.enqueue(lane, entry, now),
        }
    }

    /// Advances the time: entries become due, gates end, paces allow the next message.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        while let Some((lane, entry)) = self.timeline.pop_due(now) {
            self.enqueue(lane, entry, now);
        }
        while let Some(Reverse((at, wake))) = self.wakes.peek().copied() {
            if at > now {
                break;
            }
            self.wakes.pop();
            self.wake(at, wake, now);
        }
    }

    pub(crate) fn next_wakeup(&self) -> Option<Timestamp> {
        let wake = self.wakes.peek().map(|Reverse((at, _))| *at);
        [wake, self.timeline.next_due()].into_iter().flatten().min()
    }

    /// Actions to perform after the lock is released.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Messages that expired while waiting.
    pub(crate) fn take_expired(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.expired)
    }

    /// Stops all sending until this cause is gone.
    pub(crate) fn pause(&mut self, cause: PauseCause, reason: String) {
        self.paused.insert(cause, reason);
    }

    /// Resumes sending, unless there is another cause.
    pub(crate) fn resume(&mut self, cause: PauseCause, now: Timestamp) {
        if self.paused.remove(&cause).is_some() && self.paused.is_empty() {
            self.readmit_all(now);
        }
    }

    /// Starts no new work; returns the waiting entries, to be released.
    pub(crate) fn stop(&mut self) -> Vec<Entry> {
        self.is_stopping = true;
        self.actions.clear();
        let mut entries: Vec<Entry> = self.timeline.drain().collect();
        for (_, lane) in &mut self.lanes {
            entries.extend(std::mem::take(&mut lane.unrouted));
        }
        for (_, queue) in &mut self.queues {
            entries.extend(queue.waiting.drain().into_iter().map(|(_, entry)| entry));
        }
        for (_, path) in &mut self.paths {
            entries.extend(path.sticky_retries.drain().into_iter().map(|(_, entry)| entry));
        }
        entries
    }

    /// Drops unused lanes, queues and paths, and the state of sources at sites and providers.
    pub(crate) fn sweep(&mut self, now: Timestamp) {
        self.sweep_shares();
        // A dropped lane needs no new DNS query: the DNS client caches the answers.
        let are_too_many = self.lanes.len() > self.memory.idle_lanes_max();
        let is_done = |lane: &Lane| {
            lane.entry_count == 0 && (lane.is_stale(now) || are_too_many && lane.is_forgettable())
        };
        let (lanes, troubled) = (&mut self.lanes, &mut self.troubled_lanes);
        self.lane_ids.retain(|_, id| {
            let done = is_done(&lanes[*id]);
            if done {
                *troubled -= usize::from(!lanes[*id].trouble.is_clear());
                lanes.remove(*id);
            }
            !done
        });
        let used: HashSet<usize> = self.lanes.iter().filter_map(|(_, lane)| lane.queue()).collect();
        let idle = |queue: usize, state: &Queue, paths: &Slab<Path>| {
            !used.contains(&queue)
                && state.waiting.count() == 0
                && state
                    .paths
                    .iter()
                    .all(|path| paths[*path].connections == 0 && paths[*path].sticky_retries.count() == 0)
        };
        let gone: Vec<usize> = self
            .queues
            .iter()
            .filter(|(id, queue)| idle(*id, queue, &self.paths))
            .map(|(id, _)| id)
            .collect();
        for id in gone {
            let queue = self.queues.remove(id);
            self.queue_ids.remove(&(queue.pool, Arc::clone(&queue.route.secured_site)));
            for path in queue.paths {
                self.remove_path(path, &queue.route.site);
            }
        }
        // A small site is its own provider, so there are as many of these entries as sites.
        let known: HashSet<Arc<str>> =
            self.queues.iter().map(|(_, queue)| Arc::clone(&queue.route.provider)).collect();
        self.source_providers.retain(|(_, provider), source_provider| {
            known.contains(provider) || source_provider.standstill.is_stopped()
        });
    }

    fn remove_path(&mut self, id: usize, site: &Arc<str>) {
        let path = self.paths.remove(id);
        self.path_ids.remove(&(path.source, Arc::clone(&path.secured_site)));
        self.source_sites[path.source_site].paths.retain(|other| *other != id);
        if self.source_sites[path.source_site].paths.is_empty() {
            self.source_sites.remove(path.source_site);
            self.source_site_ids.remove(&(path.source, Arc::clone(site)));
        }
    }

    /// Records that a queue waits for a free connection.
    fn line_up_for_connection(&mut self, queue: usize, now: Timestamp) {
        let mut has_joined_general_line = false;
        for path in self.queues[queue].paths.clone() {
            if self.lacks_room(path, now) {
                let line = self.line_for_share(path, now).unwrap_or(WaitingLine::General);
                has_joined_general_line |= self.line_up_in(queue, line) && line == WaitingLine::General;
            }
        }
        if !has_joined_general_line {
            return;
        }
        // Wakes an idle connection, which finds that another queue waits for a connection, and ends.
        let provider = Arc::clone(&self.queues[queue].route.provider);
        let is_node_full = self.connections >= self.connections_max;
        let idle = self.paths.iter().find(|(_, path)| {
            let is_of_provider = || self.queues[path.queue].route.provider == provider;
            path.idle > path.notified && path.queue != queue && (is_node_full || is_of_provider())
        });
        if let Some(id) = idle.map(|(id, _)| id) {
            self.paths[id].notified += 1;
            self.shares.change_expected_requests(self.paths[id].source, 1);
            self.actions.push(Action::Wake { path: id });
        }
    }

    /// Moves entries to another pool if the addresses that they wait for have used up their daily quota, or are gone.
    fn overflow(&mut self, now: Timestamp) {
        for id in self.queues.iter().map(|(id, _)| id).collect::<Vec<_>>() {
            self.overflow_queue(id, now);
        }
    }

    fn overflow_queue(&mut self, id: usize, now: Timestamp) {
        for path in self.queues[id].paths.clone() {
            self.return_sticky_if_unhealthy(path, now);
        }
        let queue = &self.queues[id];
        // A pool that lost its last address cannot send either, so its entries move too.
        let is_pool_empty = self.sources.of_pool(queue.pool).next().is_none();
        let overflow = self.sources.overflow_of(queue.pool, &queue.route.rules.group);
        if queue.waiting.count() == 0 || (overflow.is_none() && !is_pool_empty) {
            return;
        }
        for (lane, entry) in self.queues[id].waiting.drain() {
            self.count_out(lane, entry.server_id);
            let key = self.lanes[lane].key.clone();
            match overflow {
                Some(pool) => {
                    let lane = self.find_or_add_lane(LaneKey { pool, ..key });
                    self.count_in(lane, entry.server_id);
                    self.enqueue(lane, entry, now);
                }
                None => self.add_due(key.domain, key.require_tls, entry, now),
            }
        }
    }

    /// The pool that takes over the messages of a lane whose own pool has used up its daily quota for their receivers.
    fn overflow_of(&self, lane: usize) -> Option<PoolId> {
        let lane = &self.lanes[lane];
        let queue = &self.queues[lane.queue()?];
        self.sources.overflow_of(lane.key.pool, &queue.route.rules.group)
    }
}
