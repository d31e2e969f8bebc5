//! Pull by credit: a message leaves its queue to be sent only when a connection asks for one and all limits
//! allow it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{ServerId, Timestamp};
use slab::Slab;

use super::account_pace::AccountPaces;
use super::block::{Block, BlockCause};
use super::entry::{Entry, LaneKey};
use super::gates::GateTable;
use super::lane::Lane;
use super::server_gate::ServerGate;
use super::site_queue::Admission;
use super::wait_cause::SeenBlock;
use super::{Action, CountedSource, Health, Schedule, Source, Wake};
use crate::route::Route;

/// If a path is blocked for longer, its connections are closed instead of waiting.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Why a connection asks for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkRequest {
    /// A connection task that was just started.
    First,
    /// A connection task that is done with its last job.
    Again,
    /// A connection that was idle and was woken.
    AfterWait,
}

/// Answer to a connection that asks for work.
#[derive(Debug)]
pub(crate) enum Next {
    Job(Box<Job>),
    /// Nothing now; wait to be woken.
    Wait,
    /// End the connection.
    Close,
}

/// A message given to a connection.
#[derive(Debug)]
pub(crate) struct Job {
    /// Lanes may be dropped and created while a message is being sent, so the lane is identified by its key.
    pub(crate) lane: LaneKey,
    pub(crate) entry: Entry,
    pub(crate) route: Arc<Route>,
    pub(crate) source: Arc<Source>,
    /// Whether the site counts as silent.
    pub(crate) is_site_silent: bool,
    /// Whether the site has answered lately.
    pub(crate) is_site_answering: bool,
    /// How long the message waited, and why, if that is worth a line in the transcript.
    pub(crate) waited: Option<Box<str>>,
}

impl Job {
    /// Key for counting in warm-ups; `None` for simulated mail.
    pub(crate) fn counted_source(&self) -> Option<CountedSource> {
        let counted = || CountedSource { id: self.source.id, provider: Arc::clone(&self.route.rules.group) };
        (!self.route.is_exempt).then(counted)
    }
}

impl Schedule {
    /// Makes as many connections ask for work as the waiting messages and `credit.rs` allow.
    pub(super) fn pump(&mut self, queue_id: usize, now: Timestamp) {
        if self.is_stopping {
            return;
        }
        self.pump_sticky(queue_id, now);
        let mut next_free: Option<Timestamp> = None;
        loop {
            let queue = &self.queues[queue_id];
            let expected_requests: u32 =
                queue.paths.iter().map(|path| self.paths[*path].expected_queue_requests()).sum();
            if !queue.waiting.has_turns() || expected_requests as usize >= queue.waiting.count() {
                if queue.waiting.count() == 0 {
                    self.clear_lack_of_room(queue_id);
                }
                return;
            }
            let (mut chosen, mut lacks_room): (Option<usize>, bool) = (None, false);
            let (mut blocked, mut busy) = (None, None);
            for path_id in queue.paths.clone() {
                match self.path_block(path_id, now) {
                    Some(block) => {
                        next_free = [next_free, block.until].into_iter().flatten().min();
                        blocked.get_or_insert(SeenBlock::with_end(block.cause, block.until, now));
                    }
                    None if self.is_ahead(path_id, now) => {}
                    None if self.can_take_more(path_id, now) => {
                        if chosen.is_none_or(|other| self.comes_before(path_id, other)) {
                            chosen = Some(path_id);
                        }
                    }
                    None => {
                        busy.get_or_insert_with(|| self.connections_cause(path_id, now));
                        lacks_room |= self.note_lack_of_room(path_id, now);
                        let opening = self.opening_blocked_until(path_id, now);
                        next_free = [next_free, opening].into_iter().flatten().min();
                    }
                }
            }
            let Some(path_id) = chosen else {
                let last_block = &mut self.queues[queue_id].last_block;
                if let Some(cause) = busy {
                    SeenBlock::note_connections_in_use(last_block, cause, now);
                } else if blocked.is_some() {
                    *last_block = blocked;
                }
                if lacks_room {
                    self.line_up_for_connection(queue_id, now);
                }
                break;
            };
            self.wake_or_open(path_id, now);
        }
        if let Some(at) = next_free {
            self.wake_queue_at(at, queue_id);
        }
    }

    /// Makes an idle connection of this path, or a new one, ask for work.
    pub(super) fn wake_or_open(&mut self, path_id: usize, now: Timestamp) {
        let path = &mut self.paths[path_id];
        self.shares.change_expected_requests(path.source, 1);
        if path.idle > path.notified {
            path.notified += 1;
            self.actions.push(Action::Wake { path: path_id });
            return;
        }
        let (source, route) = (path.source, Arc::clone(&self.queues[path.queue].route));
        self.count_towards_rate(path_id, now);
        let path = &mut self.paths[path_id];
        path.lacks_room_since = None;
        path.starting += 1;
        path.connections += 1;
        self.connections += 1;
        self.source_sites[path.source_site].connections += 1;
        self.source_provider(source, &route).connections += 1;
        let attempt = self.count_opening(path_id, now);
        self.actions.push(Action::Open { path: path_id, attempt });
    }

    /// A connection of this path asks for work.
    pub(crate) fn next(&mut self, path_id: usize, request: WorkRequest, now: Timestamp) -> Next {
        self.note_request(path_id, request, now);
        if self.is_stopping || self.is_superfluous(path_id) || self.connections > self.connections_max {
            return Next::Close;
        }
        if request == WorkRequest::Again && self.is_over_its_share(path_id) {
            return Next::Close;
        }
        if let Some(block) = self.path_block(path_id, now) {
            let is_short = block.until.is_some_and(|until| until.since(now) <= WAIT_MAX);
            if let Some(until) = block.until {
                let queue = self.paths[path_id].queue;
                self.wake_queue_at(until, queue);
            }
            let queue = self.paths[path_id].queue;
            self.queues[queue].last_block = Some(SeenBlock::with_end(block.cause, block.until, now));
            if self.return_sticky_if_unhealthy(path_id, now) {
                self.pump(self.paths[path_id].queue, now);
            }
            return if is_short { self.wait(path_id) } else { Next::Close };
        }
        if self.paths[path_id].sticky_retries.count() == 0 && self.is_ahead(path_id, now) {
            return self.wait(path_id);
        }
        let Some(job) = self.pop(path_id, now) else { return self.wait(path_id) };
        let queue = self.paths[path_id].queue;
        if self.queues[queue].paths.len() > 1 {
            // Paths that were ahead of this one may continue.
            self.pump(queue, now);
        }
        Next::Job(Box::new(job))
    }

    fn note_request(&mut self, path_id: usize, request: WorkRequest, now: Timestamp) {
        let path = &mut self.paths[path_id];
        path.last_request_at = Some(now);
        let expected_requests = path.expected_requests();
        match request {
            WorkRequest::First => path.starting = path.starting.saturating_sub(1),
            WorkRequest::Again => {}
            WorkRequest::AfterWait => {
                path.idle = path.idle.saturating_sub(1);
                path.notified = path.notified.saturating_sub(1);
            }
        }
        let change = i64::from(path.expected_requests()) - i64::from(expected_requests);
        self.shares.change_expected_requests(path.source, change);
    }

    /// Lets the connection wait for work; closes it instead if other queues may need the connection.
    fn wait(&mut self, path_id: usize) -> Next {
        if self.is_wanted_elsewhere(path_id) {
            return Next::Close;
        }
        self.paths[path_id].idle += 1;
        Next::Wait
    }

    fn pop(&mut self, path_id: usize, now: Timestamp) -> Option<Job> {
        let queue_id = self.paths[path_id].queue;
        let source = Arc::clone(self.sources.find(self.paths[path_id].source)?);
        loop {
            // Entries of `sticky_retries` and of the queue alternate, so that many retries of one server do not delay
            // others.
            let is_sticky_first = !self.paths[path_id].took_sticky || self.is_ahead(path_id, now);
            let popped = if is_sticky_first {
                self.pop_sticky(path_id).or_else(|| self.pop_waiting(path_id, now))
            } else {
                let popped = self.pop_waiting(path_id, now).or_else(|| self.pop_sticky(path_id));
                // Tries again, because `pop_sticky` may just have returned entries to the queue.
                popped.or_else(|| self.pop_waiting(path_id, now))
            };
            let (lane, entry) = popped?;
            self.count_out(lane, entry.server_id);
            if entry.is_expired(now) {
                self.expired.push(entry);
                continue;
            }
            let sticky_path = self.paths[path_id].took_sticky.then_some(path_id);
            let waited = self.describe_wait(queue_id, sticky_path, lane, &entry, now);
            self.count_message_of_path(path_id, &entry, now);
            return Some(Job {
                lane: self.lanes[lane].key.clone(),
                entry,
                route: Arc::clone(&self.queues[queue_id].route),
                source,
                is_site_silent: self.is_silent(path_id),
                is_site_answering: self.health(path_id, now) == Health::Answering,
                waited,
            });
        }
    }

    /// The next entry in turn that may be sent from this path's address. Entries that keep another path's address move
    /// to that path.
    fn pop_waiting(&mut self, path_id: usize, now: Timestamp) -> Option<(usize, Entry)> {
        let queue_id = self.paths[path_id].queue;
        let mut has_moved = false;
        let popped = loop {
            let is_exempt = self.queues[queue_id].route.is_exempt;
            let mut admission = SendAdmission {
                servers: &mut self.servers,
                accounts: &mut self.accounts,
                lanes: &mut self.lanes,
                gates: &self.gates,
                wakes: Vec::new(),
                queue: queue_id,
                is_exempt,
                now,
            };
            let popped = self.queues[queue_id].waiting.pop(&mut admission);
            for (at, wake) in admission.wakes {
                self.wake_at(at, wake);
            }
            let Some((lane, entry)) = popped else { break None };
            if !is_exempt {
                self.count_message_of_server(lane, entry.server_id, now);
            }
            match self.find_sticky_path(path_id, lane, &entry, now) {
                Some(sticky_path) => self.paths[sticky_path].sticky_retries.push(lane, entry),
                None => break Some((lane, entry)),
            }
            has_moved = true;
        };
        if popped.is_some() {
            self.paths[path_id].took_sticky = false;
        }
        if has_moved {
            self.pump_sticky(queue_id, now);
        }
        popped
    }

    /// One message leaves the queue, perhaps to wait for its source address. It counts towards the rates of its server
    /// and lane from now on.
    fn count_message_of_server(&mut self, lane: usize, server: ServerId, now: Timestamp) {
        self.gates.count_message(&self.lanes[lane].scopes, now);
        if let Some(server_gate) = self.servers.get_mut(&server) {
            self.gates.count_message(&server_gate.scope, now);
            server_gate.count_message(now);
            if let Some(account) = server_gate.paced_account
                && let Some((at, next)) = self.accounts.count_message(account, server, now)
            {
                self.wake_server_at(at, next);
            }
        }
        self.lanes[lane].trouble.on_send(server, now);
    }

    /// One message leaves on this path.
    fn count_message_of_path(&mut self, path_id: usize, entry: &Entry, now: Timestamp) {
        self.credit_addresses(path_id, now);
        let source = self.paths[path_id].source;
        self.note_carried_server(path_id, entry.server_id);
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        if route.is_exempt {
            return;
        }
        self.gates.count_message(&self.paths[path_id].scopes, now);
        let source_site = &mut self.source_sites[self.paths[path_id].source_site];
        source_site.connection_limit.on_send(now);
        source_site.standstill.on_send(now);
        source_site.rate.on_send(now);
        let source_provider = self.source_provider(source, &route);
        source_provider.taken_at = Some(now);
        if source_provider.has_several_sites {
            source_provider.standstill.on_send(now);
            source_provider.rate.on_send(now);
        }
        if let Some(limit) = &mut source_provider.limit {
            limit.count_message(now);
        }
        let counted = CountedSource { id: source, provider: Arc::clone(&route.rules.group) };
        self.sources.on_given(&counted);
        if self.sources.is_exhausted(self.queues[self.paths[path_id].queue].pool, &counted.provider) {
            self.overflow(now);
        }
    }
}

/// Admits servers and lanes, or records when to readmit them.
struct SendAdmission<'a> {
    servers: &'a mut HashMap<ServerId, ServerGate>,
    accounts: &'a mut AccountPaces,
    lanes: &'a mut Slab<Lane>,
    gates: &'a GateTable,
    wakes: Vec<(Timestamp, Wake)>,
    queue: usize,
    is_exempt: bool,
    now: Timestamp,
}

impl Admission for SendAdmission<'_> {
    fn admits_server(&mut self, server: ServerId) -> bool {
        if self.is_exempt {
            return true;
        }
        let server_gate = self.servers.entry(server).or_insert_with(|| ServerGate::new(server));
        let block = server_gate
            .block(self.accounts, self.now)
            .or_else(|| self.gates.block(&server_gate.scope, self.now));
        let Some(block) = block else { return true };
        if let (BlockCause::AccountRate { .. }, Some(account)) = (&block.cause, server_gate.paced_account) {
            self.accounts.wait(account, server);
        }
        server_gate.removed_from_rings.insert(self.queue);
        if let Some(until) = block.until.filter(|until| server_gate.wake_at.is_none_or(|at| *until < at)) {
            server_gate.wake_at = Some(until);
            self.wakes.push((until, Wake::Server(server)));
        }
        server_gate.last_block = Some(SeenBlock::new(block.cause, self.now));
        false
    }

    fn admits_lane(&mut self, lane: usize, server: ServerId) -> bool {
        if self.is_exempt {
            return true;
        }
        let state = &mut self.lanes[lane];
        let block =
            self.gates.block(&state.scopes, self.now).or_else(|| state.trouble_block(server, self.now));
        let Some(Block { until, cause }) = block else { return true };
        state.last_block = Some(SeenBlock::new(cause, self.now));
        state.removed_from_rings.insert((self.queue, server));
        if let Some(until) = until.filter(|until| state.wake_at.is_none_or(|at| *until < at)) {
            state.wake_at = Some(until);
            self.wakes.push((until, Wake::Lane(lane)));
        }
        false
    }
}
