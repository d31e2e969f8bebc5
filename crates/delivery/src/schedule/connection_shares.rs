//! Shares of the node's connections. A site that does not answer gets one connection, and all such sites together get a
//! fifth of the node's connections. A new site gets one until it has replied to its first message, while new and silent
//! sites together hold less than seven tenths. A server with more than its share gives connections up while other
//! servers wait for one.
//!
//! `attempts.rs` decides when a site counts as silent, for example when a host has not greeted within a second. While
//! silent sites hold more than their fifth, the schedule aborts attempts that become silent before their connection
//! accepts messages. The message then waits, without a failure, until connections to silent sites may be opened again.
//! A message whose host hangs is aborted after three seconds while connections are scarce. A connection that waits
//! long for a final reply does not count (`parking.rs`).

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use postroad_model::{ServerId, Timestamp};

use super::Schedule;
use crate::route::RouteKind;
use crate::turns::Turns;

/// A site that was not used for this long must answer again before it gets more than one connection.
const SITE_UNUSED_MAX: Duration = Duration::from_mins(10);
/// Queues of the general line that are examined when a connection becomes free. More than one, because some wait for
/// their provider's limit.
const EXAMINED_MAX: usize = 8;

/// Whether a site answers, seen from one source address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Health {
    /// The site has not replied to a message yet, or was not used lately.
    #[default]
    New,
    Answering,
    /// The site's hosts do not answer in time.
    Silent,
}

/// Lines in which a site queue waits for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitingLine {
    /// Waits for room in the node's limit or the provider's.
    General,
    /// Waits for room in the share of new sites.
    New,
    /// Waits for room in the share of silent sites.
    Silent,
}

/// The lines in which a queue waits: its paths may wait in different ones.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WaitingLines([bool; 3]);

impl WaitingLines {
    pub(super) fn contains(self, line: WaitingLine) -> bool {
        self.0[line as usize]
    }

    pub(super) fn is_only(self, line: WaitingLine) -> bool {
        [WaitingLine::General, WaitingLine::New, WaitingLine::Silent]
            .iter()
            .all(|other| self.contains(*other) == (*other == line))
    }

    /// Adds a line; returns whether it is new.
    fn insert(&mut self, line: WaitingLine) -> bool {
        !std::mem::replace(&mut self.0[line as usize], true)
    }

    fn remove(&mut self, line: WaitingLine) {
        self.0[line as usize] = false;
    }
}

/// The share in which an attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptShare {
    New,
    Silent,
}

#[derive(Debug)]
pub(super) struct ConnectionShares {
    /// Number of attempts at new sites.
    new: u32,
    /// Number of attempts that count as silent.
    silent: u32,
    /// Connections to silent sites are opened only below this. Attempts that become silent during a message may exceed
    /// it.
    silent_max: u32,
    /// Connections to new sites are opened only while new and silent attempts together are below this: the node's limit
    /// without three connections of each full ten. A limit below ten is not reduced.
    unproved_max: u32,
    /// Number of the last attempt.
    last_attempt_id: u64,
    /// Attempts by the time they become overdue, with their paths.
    pub(super) overdue: BTreeSet<(Timestamp, usize, u64)>,
    /// Time of the scheduled wake-up for overdue attempts.
    pub(super) overdue_wake: Option<Timestamp>,
    general_line: Turns<ServerId, usize>,
    new_line: Turns<ServerId, usize>,
    silent_line: Turns<ServerId, usize>,
    /// Number of connections per server. All connections of a path count for the server whose message the path carried
    /// last.
    in_use: HashMap<ServerId, u32>,
}

impl ConnectionShares {
    pub(super) fn new(connections_max: u32) -> Self {
        Self {
            new: 0,
            silent: 0,
            silent_max: connections_max.div_ceil(5),
            unproved_max: connections_max - connections_max / 10 * 3,
            last_attempt_id: 0,
            overdue: BTreeSet::new(),
            overdue_wake: None,
            general_line: Turns::default(),
            new_line: Turns::default(),
            silent_line: Turns::default(),
            in_use: HashMap::new(),
        }
    }

    /// Queues that wait for a connection of the node or of their provider, one for each server.
    pub(super) fn first_in_line(&self) -> impl Iterator<Item = usize> {
        self.general_line.heads().copied()
    }

    /// Whether sites wait for their first connection.
    pub(super) fn is_crowded(&self) -> bool {
        !self.new_line.is_empty()
    }

    fn line(&mut self, line: WaitingLine) -> &mut Turns<ServerId, usize> {
        match line {
            WaitingLine::General => &mut self.general_line,
            WaitingLine::New => &mut self.new_line,
            WaitingLine::Silent => &mut self.silent_line,
        }
    }

    pub(super) fn next_attempt_id(&mut self) -> u64 {
        self.last_attempt_id += 1;
        self.last_attempt_id
    }

    pub(super) fn has_too_many_silent(&self) -> bool {
        self.silent > self.silent_max
    }

    pub(super) fn count(&mut self, share: Option<AttemptShare>) {
        match share {
            Some(AttemptShare::New) => self.new += 1,
            Some(AttemptShare::Silent) => self.silent += 1,
            None => {}
        }
    }

    pub(super) fn uncount(&mut self, share: Option<AttemptShare>) {
        match share {
            Some(AttemptShare::New) => self.new -= 1,
            Some(AttemptShare::Silent) => self.silent -= 1,
            None => {}
        }
    }

    fn add_in_use(&mut self, server: ServerId, connections: u32) {
        if connections > 0 {
            *self.in_use.entry(server).or_default() += connections;
        }
    }

    fn remove_in_use(&mut self, server: Option<ServerId>, connections: u32) {
        let Some(server) = server else { return };
        if let Some(in_use) = self.in_use.get_mut(&server) {
            *in_use = in_use.saturating_sub(connections);
            if *in_use == 0 {
                self.in_use.remove(&server);
            }
        }
    }
}

/// Which sites wait for connections that others use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Shortage {
    #[default]
    None,
    /// Silent and new sites: their share is used up.
    Unproved,
    /// Any site: the node has no connection left.
    Full,
}

impl Schedule {
    pub(crate) fn shortage(&self) -> Shortage {
        let shares = &self.connection_shares;
        if self.connections >= self.connections_max && !shares.general_line.is_empty() {
            Shortage::Full
        } else if !shares.silent_line.is_empty() || !shares.new_line.is_empty() {
            Shortage::Unproved
        } else {
            Shortage::None
        }
    }

    pub(super) fn health(&self, path_id: usize, now: Timestamp) -> Health {
        self.health_without(path_id, 0, now)
    }

    /// Health of the path's site, not counting `opened` connections that were just opened to it from the same address.
    fn health_without(&self, path_id: usize, opened: u32, now: Timestamp) -> Health {
        let path = &self.paths[path_id];
        // Hosts in this process always answer.
        let kind = self.queues[path.queue].route.kind;
        if matches!(kind, RouteKind::Simulator | RouteKind::Inbox) {
            return Health::Answering;
        }
        let source_site = &self.source_sites[path.source_site];
        let is_used = source_site.connections > opened
            || source_site
                .paths
                .iter()
                .any(|id| self.paths[*id].taken_at.is_some_and(|at| now.since(at) < SITE_UNUSED_MAX));
        if source_site.health == Health::Answering && !is_used { Health::New } else { source_site.health }
    }

    /// Whether shares allow a path one more connection.
    pub(super) fn has_share(&self, path_id: usize, now: Timestamp) -> bool {
        let health = self.health(path_id, now);
        if health == Health::Answering {
            return true;
        }
        self.has_no_unproved_connection(path_id) && self.has_room_for(health)
    }

    /// The line to wait in, if only connections of other new or silent sites are in the way.
    pub(super) fn line_for_share(&self, path_id: usize, now: Timestamp) -> Option<WaitingLine> {
        let health = self.health(path_id, now);
        if self.has_room_for(health) || !self.has_no_unproved_connection(path_id) {
            return None;
        }
        Some(if health == Health::New { WaitingLine::New } else { WaitingLine::Silent })
    }

    /// Whether no connection to the path's site, from any address of its pool, still has to prove that the site
    /// answers.
    fn has_no_unproved_connection(&self, path_id: usize) -> bool {
        let queue = &self.queues[self.paths[path_id].queue];
        let own = self.paths[path_id].source_site;
        let is_free = |source_site: usize| self.source_sites[source_site].connections == 0;
        let is_answering = |source_site: usize| {
            source_site != own && self.source_sites[source_site].health == Health::Answering
        };
        queue
            .paths
            .iter()
            .map(|id| self.paths[*id].source_site)
            .all(|source_site| is_free(source_site) || is_answering(source_site))
    }

    fn has_room_for(&self, health: Health) -> bool {
        match health {
            Health::Answering => true,
            Health::New => {
                let shares = &self.connection_shares;
                shares.new + shares.silent < shares.unproved_max
            }
            Health::Silent => self.connection_shares.silent < self.connection_shares.silent_max,
        }
    }

    /// Counts a new connection task with its first attempt.
    pub(super) fn count_opening(&mut self, path_id: usize, now: Timestamp) -> u64 {
        let health = self.health_without(path_id, 1, now);
        let share = match health {
            Health::Answering => None,
            Health::New => Some(AttemptShare::New),
            Health::Silent => Some(AttemptShare::Silent),
        };
        let path = &mut self.paths[path_id];
        if share.is_some() {
            self.source_sites[path.source_site].health = health;
        }
        let next = self.queues[path.queue].waiting.next_server().or(path.carried_server);
        if let Some(server) = next {
            // `path.connections` already counts the new one.
            let others = path.connections - 1;
            let before = path.carried_server.replace(server);
            self.connection_shares.remove_in_use(before, others);
            self.connection_shares.add_in_use(server, others + 1);
        }
        self.begin_attempt(path_id, share)
    }

    /// Counts the end of a connection task, which makes room for others.
    pub(super) fn count_closing(&mut self, path_id: usize) {
        self.connection_shares.remove_in_use(self.paths[path_id].carried_server, 1);
        self.end_excess_attempts(path_id);
    }

    /// The path's connections now carry this server's mail.
    pub(super) fn note_carried_server(&mut self, path_id: usize, server: ServerId) {
        let path = &mut self.paths[path_id];
        if path.carried_server != Some(server) {
            let before = path.carried_server.replace(server);
            let connections = path.connections;
            self.connection_shares.remove_in_use(before, connections);
            self.connection_shares.add_in_use(server, connections);
        }
    }

    /// Whether the server whose turn is next in the path's queue has more than its share of the node's connections,
    /// while other servers wait for one.
    pub(super) fn is_over_its_share(&self, path_id: usize) -> bool {
        if self.connections < self.connections_max {
            return false;
        }
        let Some(server) = self.queues[self.paths[path_id].queue].waiting.next_server() else { return false };
        let others = self.connection_shares.general_line.count_other_keys(server);
        let share = self.connections_max / (others as u32 + 1);
        others > 0 && self.connection_shares.in_use.get(&server).is_some_and(|in_use| *in_use > share.max(1))
    }

    /// Puts a queue into a line. Returns `false` if the queue was already in that line, or has no messages.
    pub(super) fn line_up_in(&mut self, queue_id: usize, line: WaitingLine) -> bool {
        let queue = &mut self.queues[queue_id];
        let sticky_server =
            || queue.paths.iter().find_map(|path| self.paths[*path].sticky_retries.next_server());
        let Some(server) = queue.waiting.next_server().or_else(sticky_server) else { return false };
        if !queue.lines.insert(line) {
            return false;
        }
        let was_empty = self.connection_shares.line(line).is_empty();
        self.connection_shares.line(line).push(server, queue_id);
        if line == WaitingLine::New && was_empty {
            // From now on all attempts have less time.
            self.schedule_overdue_wake();
        }
        true
    }

    /// Lets queues in this line connect, as long as there is room.
    pub(super) fn serve_line(&mut self, line: WaitingLine, now: Timestamp) {
        let examined_max = match line {
            WaitingLine::General => EXAMINED_MAX.min(self.connection_shares.general_line.len()),
            WaitingLine::New | WaitingLine::Silent => self.connection_shares.line(line).len(),
        };
        for _ in 0..examined_max {
            let has_room = match line {
                WaitingLine::General => true,
                WaitingLine::New => self.has_room_for(Health::New),
                WaitingLine::Silent => self.has_room_for(Health::Silent),
            };
            if !has_room || self.connections >= self.connections_max {
                return;
            }
            let Some(queue_id) = self.connection_shares.line(line).pop() else { return };
            if let Some(queue) = self.queues.get_mut(queue_id) {
                queue.lines.remove(line);
                self.pump(queue_id, now);
            }
        }
    }
}
