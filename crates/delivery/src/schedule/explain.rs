//! Explains to people why a message waits, and summarises the schedule.

use postroad_model::{DomainName, MessageId, ServerId, Timestamp};
use serde::Serialize;

use super::block::BlockCause;
use super::lane::LaneRoute;
use super::{LaneKey, PauseCause, Schedule, WaitingLine};
use crate::pacing::Reader;

/// Totals of the schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Messages in memory: due now or within the horizon.
    pub in_memory: usize,
    /// Of those in memory: not due yet.
    pub waiting_for_their_time: usize,
    /// Of those in memory: due and waiting for their turn.
    pub waiting_for_their_turn: usize,
    pub connections: u32,
    pub paths: Vec<PathTotals>,
}

/// One path that is in use or blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathTotals {
    pub source: String,
    pub site: String,
    pub provider: String,
    pub connections: u32,
    pub waiting: usize,
    /// Why nothing is sent on the path, if it is blocked.
    pub blocked: Option<String>,
    /// Estimates about the receiver, from its replies.
    pub learned: Option<String>,
}

impl Schedule {
    /// Domains of lanes with at least `entries_max` messages in memory.
    pub(crate) fn full_domains(&self, entries_max: usize) -> Vec<DomainName> {
        let full = self.lanes.iter().filter(|(_, lane)| lane.entry_count >= entries_max);
        full.map(|(_, lane)| lane.key.domain.clone()).collect()
    }

    pub(crate) fn totals(&mut self, now: Timestamp) -> Totals {
        let ids: Vec<usize> = self.paths.iter().map(|(id, _)| id).collect();
        let mut paths = Vec::new();
        for id in ids {
            let blocked = self.path_block(id, now).map(|block| block.text(Reader::Operator));
            let path = &self.paths[id];
            let queue = &self.queues[path.queue];
            let waiting = queue.waiting.count() + path.sticky_retries.count();
            if path.connections == 0 && waiting == 0 && blocked.is_none() {
                continue;
            }
            paths.push(PathTotals {
                source: self.sources.find(path.source).map_or_else(String::new, |source| source.name()),
                site: path.secured_site.to_string(),
                provider: queue.route.provider.to_string(),
                connections: path.connections,
                waiting,
                blocked,
                learned: self.source_sites[path.source_site].describe_estimates(Reader::Operator),
            });
        }
        let in_memory = self.entry_count();
        let waiting_for_their_time = self.timeline.len();
        Totals {
            in_memory,
            waiting_for_their_time,
            waiting_for_their_turn: in_memory - waiting_for_their_time,
            connections: self.connections,
            paths,
        }
    }

    /// Due time of the longest waiting message. Examines only the head of each queue.
    pub(crate) fn oldest_due(&self) -> Option<Timestamp> {
        let unrouted =
            self.lanes.iter().filter_map(|(_, lane)| lane.unrouted.front()).map(|entry| entry.due_at);
        let waiting = self.queues.iter().filter_map(|(_, queue)| queue.waiting.oldest_due());
        let sticky_retries = self.paths.iter().filter_map(|(_, path)| path.sticky_retries.oldest_due());
        unrouted.chain(waiting).chain(sticky_retries).min()
    }

    /// Why nothing is sent at all; empty if sending is not paused.
    pub(crate) fn pause_causes(&self) -> Vec<PauseCause> {
        self.paused.keys().copied().collect()
    }

    /// Explains to this reader why a message waits although it is due. A server learns nothing of other servers'
    /// messages.
    pub(crate) fn why_waiting(
        &mut self,
        domain: &DomainName,
        server: ServerId,
        message: MessageId,
        reader: Reader,
        now: Timestamp,
    ) -> String {
        if let Some(reason) = self.paused.values().next() {
            return format!("It waits because delivery is paused: {reason}.");
        }
        if let Some(server_gate) = self.servers.get(&server)
            && let Some(block) =
                server_gate.block(&self.accounts, now).or_else(|| self.gates.block(&server_gate.scope, now))
        {
            return format!("It waits because {}.", block.text(reader));
        }
        let Some(lane_id) = self.lane_of_message(domain, server, message) else {
            return "It waits in the store until a node claims it, usually within seconds.".to_owned();
        };
        let lane = &self.lanes[lane_id];
        if let Some(block) = self.gates.block(&lane.scopes, now).or_else(|| lane.trouble_block(server, now)) {
            return format!("It waits because {}.", block.text(reader));
        }
        let queue = match &lane.route {
            LaneRoute::Unknown | LaneRoute::Resolving { .. } => {
                return format!("It waits for the DNS to say where mail for {domain} goes.");
            }
            LaneRoute::Failed { until, reason } => {
                return format!(
                    "It waits because {reason}; the DNS is asked again at {}.",
                    until.to_rfc3339()
                );
            }
            LaneRoute::Known { queue, .. } => *queue,
        };
        let paths = self.queues[queue].paths.clone();
        let sticky_path =
            paths.iter().copied().find(|path| self.paths[*path].sticky_retries.contains(server, message));
        if let Some(sticky_path) = sticky_path {
            return self.why_sticky(sticky_path, server, reader, now);
        }
        let blocks: Vec<_> = paths.iter().map(|path| self.path_block(*path, now)).collect();
        if let Some(Some(block)) = blocks.iter().find(|block| block.is_some())
            && blocks.iter().all(Option::is_some)
        {
            return format!("It waits because {}.", block.text(reader));
        }
        let busy = self.busy_connections(&paths, now);
        let queue = &self.queues[queue];
        if queue.lines.is_only(WaitingLine::Silent) {
            return format!(
                "It waits because {} has not answered lately and other such sites are tried first; all of them together get a \
                 fifth of the connections.",
                queue.route.site
            );
        }
        let busy = busy.map_or_else(String::new, |busy| format!("{}; ", busy.text(reader)));
        let count = count_for(reader, queue.waiting.count(), queue.waiting.count_of(server));
        format!("It waits for its turn at {}: {busy}{count}.", queue.route.site)
    }

    /// What the receiver of a waiting message seems to take, from its replies; `None` if nothing is known.
    pub(crate) fn estimates_about(
        &self,
        domain: &DomainName,
        server: ServerId,
        message: MessageId,
        reader: Reader,
    ) -> Option<String> {
        let queue = self.lanes[self.lane_of_message(domain, server, message)?].queue()?;
        let mut paths = self.queues[queue].paths.iter();
        paths.find_map(|path| self.source_sites[self.paths[*path].source_site].describe_estimates(reader))
    }

    /// The lane in which a message waits. If it is in none, the lane that its server's mail would take, or else any
    /// lane of the domain.
    fn lane_of_message(&self, domain: &DomainName, server: ServerId, message: MessageId) -> Option<usize> {
        let of_domain = self.lane_ids.iter().filter(|(key, _)| key.domain == *domain);
        let lanes: Vec<(&LaneKey, usize)> = of_domain.map(|(key, id)| (key, *id)).collect();
        let contains_message = |(_, id): &&(&LaneKey, usize)| {
            let lane = &self.lanes[*id];
            let is_unrouted = || lane.unrouted.iter().any(|entry| entry.message_id == message);
            let is_routed = |queue: usize| {
                let queue = &self.queues[queue];
                let of_paths = queue.paths.iter().map(|path| &self.paths[*path].sticky_retries);
                let mut queues = of_paths.chain([&queue.waiting]);
                queues.any(|queue| queue.contains_in_lane(*id, server, message))
            };
            is_unrouted() || lane.queue().is_some_and(is_routed)
        };
        let server_pool = self.servers.get(&server).and_then(|server| server.chosen_pool);
        let pool = self.sources.choose_pool(None, server_pool, None);
        let found = if lanes.len() > 1 { lanes.iter().find(contains_message) } else { None };
        let usual = || lanes.iter().find(|(key, _)| key.pool == pool && !key.require_tls);
        found.or_else(usual).or(lanes.first()).map(|(_, id)| *id)
    }

    /// The connection limit that keeps all of these paths from taking a message.
    fn busy_connections(&mut self, paths: &[usize], now: Timestamp) -> Option<BlockCause> {
        let mut found = None;
        for path in paths.iter().copied() {
            if self.paths[path].retired || self.path_block(path, now).is_some() {
                continue;
            }
            if self.can_take_more(path, now) {
                return None;
            }
            found.get_or_insert_with(|| self.connections_cause(path, now));
        }
        found.filter(|cause| matches!(cause, BlockCause::Connections { limit: Some(_), .. }))
    }

    /// Explains why a retry waits for the source address of this path.
    fn why_sticky(&mut self, path_id: usize, server: ServerId, reader: Reader, now: Timestamp) -> String {
        let block = self.path_block(path_id, now);
        let path = &self.paths[path_id];
        let address = self.sources.find(path.source).map_or_else(String::new, |source| source.name());
        let site = &self.queues[path.queue].route.site;
        if let Some(block) = block {
            let cause = block.text(reader);
            return format!("It waits for {address}, which its last attempt came from, because {cause}.");
        }
        let count = count_for(reader, path.sticky_retries.count(), path.sticky_retries.count_of(server));
        format!("It waits for its turn at {site} from {address}, which its last attempt came from: {count}.")
    }
}

/// Number of waiting messages, for a sentence; a server learns only the number of its own.
fn count_for(reader: Reader, all: usize, own: usize) -> String {
    match reader {
        Reader::Operator => format!("{all} messages wait there, {own} of them from the same server"),
        Reader::Server(_) | Reader::Anyone => format!("messages of this server that wait there: {own}"),
    }
}
