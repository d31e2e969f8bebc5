//! Credit: whether a path may take one more message now, and if not, why.

use std::sync::Arc;

use postroad_model::{SourceId, Timestamp};

use super::block::{Block, BlockCause};
use super::even_pace::EvenPace;
use super::{Schedule, SourceProvider};
use crate::pacing::{Evidence, RateEstimate, Standstill};
use crate::route::Route;

/// Maximum number of queues waiting for a connection that `is_wanted_elsewhere` examines.
const EXAMINED_MAX: usize = 8;

impl Schedule {
    /// Whether there is an idle connection to wake, or room for another one. Where messages are sent one at a time,
    /// connections come one at a time too.
    pub(super) fn can_take_more(&mut self, path_id: usize, now: Timestamp) -> bool {
        let path = &self.paths[path_id];
        if path.retired || (path.expected_requests() > 0 && self.is_paced(path_id)) {
            return false;
        }
        path.idle > path.notified
            || (self.has_room(path_id, now) && self.opening_blocked_until(path_id, now).is_none())
    }

    /// Whether all connection limits leave room for one more.
    fn has_room(&self, path_id: usize, now: Timestamp) -> bool {
        self.has_room_at_site(path_id, now)
            && self.connections_to_provider(path_id) < self.provider_connections_max(path_id)
            && self.connections < self.connections_max
            && self.has_share(path_id, now)
    }

    /// Whether the provider's rules, the receiver's own limit and the slow start leave room for one more connection.
    fn has_room_at_site(&self, path_id: usize, now: Timestamp) -> bool {
        self.source_sites[self.paths[path_id].source_site].connections
            < self.connections_max_at_site(path_id, now)
    }

    fn connections_max_at_site(&self, path_id: usize, now: Timestamp) -> u32 {
        let path = &self.paths[path_id];
        let limit = self.source_sites[path.source_site].connection_limit.limit(now).unwrap_or(u32::MAX);
        self.provider_connections_max(path_id).min(limit).min(path.ramp)
    }

    /// Whether only other connections are in the way: to the same provider, of the whole node, or to other new or
    /// silent sites.
    pub(super) fn lacks_room(&mut self, path_id: usize, now: Timestamp) -> bool {
        let path = &self.paths[path_id];
        let is_full = self.connections >= self.connections_max
            || self.connections_to_provider(path_id) >= self.provider_connections_max(path_id)
            || self.line_for_share(path_id, now).is_some();
        !path.retired && path.expected_requests() == 0 && self.has_room_at_site(path_id, now) && is_full
    }

    /// The connection limit in the way. `limit` is `None` if other sites have used up the share of new or silent sites,
    /// or during a pause between connections.
    pub(super) fn connections_cause(&self, path_id: usize, now: Timestamp) -> BlockCause {
        let path = &self.paths[path_id];
        let route = &self.queues[path.queue].route;
        let at_site = self.source_sites[path.source_site].connections;
        let limits = [
            (Some(&route.site), at_site, self.connections_max_at_site(path_id, now)),
            (
                Some(&route.provider),
                self.connections_to_provider(path_id),
                self.provider_connections_max(path_id),
            ),
            (None, self.connections, self.connections_max),
        ];
        let reached = limits.into_iter().find(|(_, in_use, limit)| in_use >= limit);
        // A limit may have shrunk below the number in use; superfluous connections are closed soon.
        let reached = reached.map(|(to, in_use, limit)| (to, in_use, Some(limit.max(in_use))));
        let (to, in_use, limit) = reached.unwrap_or((Some(&route.site), at_site, None));
        BlockCause::Connections { to: to.cloned(), in_use, limit }
    }

    /// Whether the path lacks room. If it has no connection either, records since when.
    pub(super) fn note_lack_of_room(&mut self, path_id: usize, now: Timestamp) -> bool {
        let lacks_room = self.lacks_room(path_id, now);
        let path = &mut self.paths[path_id];
        if lacks_room && path.connections == 0 {
            path.lacks_room_since.get_or_insert(now);
        }
        lacks_room
    }

    /// The queue is empty: its paths need no connection.
    pub(super) fn clear_lack_of_room(&mut self, queue_id: usize) {
        for path in &self.queues[queue_id].paths {
            self.paths[*path].lacks_room_since = None;
        }
    }

    /// Whether other queues may need this path's connection: the node has no connection left, or another queue of the
    /// same provider waits for one.
    pub(super) fn is_wanted_elsewhere(&self, path_id: usize) -> bool {
        if self.connections >= self.connections_max {
            return true;
        }
        let path = &self.paths[path_id];
        let provider = &self.queues[path.queue].route.provider;
        self.connection_shares.first_in_line().take(EXAMINED_MAX).any(|other| {
            let queue = self.queues.get(other).filter(|_| other != path.queue);
            queue.is_some_and(|queue| queue.route.provider == *provider && queue.waiting.count() > 0)
        })
    }

    fn connections_to_provider(&self, path_id: usize) -> u32 {
        let path = &self.paths[path_id];
        let key = (path.source, Arc::clone(&self.queues[path.queue].route.provider));
        self.source_providers.get(&key).map_or(0, |source_provider| source_provider.connections)
    }

    /// When another connection may be opened, if not now.
    pub(super) fn opening_blocked_until(&self, path_id: usize, now: Timestamp) -> Option<Timestamp> {
        let path = &self.paths[path_id];
        let key = (path.source, Arc::clone(&self.queues[path.queue].route.provider));
        self.source_providers.get(&key)?.openings?.blocked_until(now)
    }

    /// Counts a new connection towards the provider's rate of connections.
    pub(super) fn count_towards_rate(&mut self, path_id: usize, now: Timestamp) {
        let path = &self.paths[path_id];
        let (source, route) = (path.source, Arc::clone(&self.queues[path.queue].route));
        if let Some(openings) = &mut self.source_provider(source, &route).openings {
            openings.count_message(now);
        }
    }

    /// Whether messages leave this path one at a time: a rate, a standstill or a gate limits them.
    pub(super) fn is_paced(&self, path_id: usize) -> bool {
        let path = &self.paths[path_id];
        let source_site = &self.source_sites[path.source_site];
        let provider = &self.queues[path.queue].route.provider;
        let is_limited = |source_provider: &SourceProvider| {
            source_provider.limit.is_some()
                || source_provider.rate.is_limiting()
                || source_provider.standstill.is_stopped()
        };
        source_site.rate.is_limiting()
            || source_site.standstill.is_stopped()
            || self.source_providers.get(&(path.source, Arc::clone(provider))).is_some_and(is_limited)
            || self.gates.is_paced(&path.scopes)
    }

    /// Maximum number of connections of a path to its provider, by the provider's rules.
    fn provider_connections_max(&self, path_id: usize) -> u32 {
        self.queues[self.paths[path_id].queue].route.rules.connections_max
    }

    pub(super) fn source_provider(&mut self, source: SourceId, route: &Route) -> &mut SourceProvider {
        self.source_providers.entry((source, Arc::clone(&route.provider))).or_insert_with(|| {
            let address = self.sources.scope_address(source);
            let note = self.pacing_notes.of_provider(address, &route.provider);
            let mut new = new_source_provider(route);
            if let Some(note) = note.filter(|_| new.has_several_sites) {
                new.adopt(note);
            }
            new
        })
    }

    /// The obstacle that keeps a path from sending now.
    pub(super) fn path_block(&mut self, path_id: usize, now: Timestamp) -> Option<Block> {
        if let Some(reason) = self.paused.values().next() {
            return Some(Block { until: None, cause: BlockCause::Paused(reason.clone()) });
        }
        let path = &self.paths[path_id];
        if let Some(until) = path.back_off.blocked_until(now) {
            let cause = BlockCause::BackOff {
                site: path.secured_site.to_string(),
                reason: path.back_off.reason.clone(),
            };
            return Some(Block { until: Some(until), cause });
        }
        let route = Arc::clone(&self.queues[path.queue].route);
        if route.is_exempt {
            return None;
        }
        if let Some(block) = self.gates.block(&path.scopes, now) {
            return Some(block);
        }
        let source_id = path.source;
        if let Some(source) = self.sources.find(source_id)
            && self.sources.has_sent_quota(source, &route.rules.group)
        {
            let (source, paused_reason) = (source.name(), source.paused_reason.clone());
            let cause = BlockCause::WarmUp { source, provider: route.rules.group.to_string(), paused_reason };
            return Some(Block { until: None, cause });
        }
        let source_site = path.source_site;
        let block =
            self.site_block(source_site, &route, now).or_else(|| self.provider_block(source_id, &route, now));
        let is_standstill = matches!(block, Some(Block { cause: BlockCause::Standstill { .. }, .. }));
        if is_standstill && self.end_standstills_of_one_server(path_id, &route, now) {
            return self
                .site_block(source_site, &route, now)
                .or_else(|| self.provider_block(source_id, &route, now));
        }
        block
    }

    /// An obstacle caused by the receiver's replies, at this site.
    fn site_block(&mut self, source_site: usize, route: &Route, now: Timestamp) -> Option<Block> {
        let source_site = &mut self.source_sites[source_site];
        let receiver = || route.site.to_string();
        if let Some(until) = source_site.connection_limit.blocked_until(now) {
            let reason = source_site.connection_limit.reply().clone();
            return Some(Block {
                until: Some(until),
                cause: BlockCause::NoConnection { receiver: receiver(), reason },
            });
        }
        standstill_block(&source_site.standstill, receiver, now)
            .or_else(|| rate_block(&mut source_site.rate, receiver, now))
    }

    /// An obstacle at all sites of the provider, caused by replies or by the provider's rules.
    fn provider_block(&mut self, source: SourceId, route: &Route, now: Timestamp) -> Option<Block> {
        let provider = || route.provider.to_string();
        let source_provider = self.source_provider(source, route);
        if source_provider.has_several_sites {
            let block = standstill_block(&source_provider.standstill, provider, now)
                .or_else(|| rate_block(&mut source_provider.rate, provider, now));
            if block.is_some() {
                return block;
            }
        }
        let until = source_provider.limit.as_ref()?.blocked_until(now)?;
        Some(Block { until: Some(until), cause: BlockCause::ProviderRate { provider: provider() } })
    }

    /// Whether the path has to close a connection: its source left the pool, or a limit has shrunk below the
    /// connections in use. The limit estimated from the receiver's replies does not count: the receiver has accepted
    /// the open connections.
    pub(super) fn is_superfluous(&self, path_id: usize) -> bool {
        let limit = self.provider_connections_max(path_id).max(1);
        let path = &self.paths[path_id];
        path.retired
            || self.source_sites[path.source_site].connections > limit
            || self.connections_to_provider(path_id) > limit
    }
}

fn standstill_block(standstill: &Standstill, receiver: impl Fn() -> String, now: Timestamp) -> Option<Block> {
    let until = standstill.blocked_until(now)?;
    let since = standstill.since().unwrap_or(now);
    let cause = BlockCause::Standstill { receiver: receiver(), since, reason: standstill.reason() };
    Some(Block { until: Some(until), cause })
}

fn rate_block(rate: &mut RateEstimate, receiver: impl Fn() -> String, now: Timestamp) -> Option<Block> {
    let until = rate.blocked_until(now)?;
    let per_minute = rate.per_minute(now).unwrap_or_default().round() as u64;
    let cause = BlockCause::TooFast { receiver: receiver(), per_minute, reason: rate.reason() };
    Some(Block { until: Some(until), cause })
}

/// The state of a source at a provider that it has not sent to lately.
fn new_source_provider(route: &Route) -> SourceProvider {
    SourceProvider {
        has_several_sites: route.provider != route.site,
        limit: route.rules.messages_per_minute.map(EvenPace::per_minute),
        connections: 0,
        taken_at: None,
        openings: route.rules.connections_per_minute.map(|rate| EvenPace::per_minute(f64::from(rate))),
        rate: RateEstimate::default(),
        standstill: Standstill::default(),
        too_fast_sites: Evidence::default(),
        refusing_sites: Evidence::default(),
        refusing_domains: Evidence::default(),
        saved_estimates: None,
    }
}
