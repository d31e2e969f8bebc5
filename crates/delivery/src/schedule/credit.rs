//! Credit: whether a path may take one more message now, and what stands in the way if not.

use std::sync::Arc;

use postroad_model::{GateScope, SourceId, Timestamp};

use super::block::{Block, Why};
use super::bucket::Bucket;
use super::{Pace, Schedule, sources};
use crate::pacing::Pacing;
use crate::route::Route;

/// Of those who wait for a connection, so many are looked at.
const LINE_LOOKED_AT_MAX: usize = 8;

impl Schedule {
    /// An idle connection to wake, or room for another one. Where messages go one at a time, so do the connections
    /// that come for them.
    pub(super) fn can_take_more(&mut self, path_id: usize, now: Timestamp) -> bool {
        let limit = self.connections_max(path_id, now);
        let path = &self.paths[path_id];
        if path.retired || (path.coming() > 0 && self.is_paced(path_id)) {
            return false;
        }
        let room = self.links[path.link].connections < limit.min(path.ramp)
            && self.connections_to_provider(path_id) < limit
            && self.connections < self.connections_max
            && self.has_share(path_id, now);
        path.idle > path.notified || (room && self.opening_block(path_id, now).is_none())
    }

    /// Only the connections of others are in the way: to the same provider, of the whole node, or of other sites that do not
    /// answer.
    pub(super) fn lacks_room(&mut self, path_id: usize, now: Timestamp) -> bool {
        let limit = self.connections_max(path_id, now);
        let path = &self.paths[path_id];
        let is_full = self.connections >= self.connections_max
            || self.connections_to_provider(path_id) >= limit
            || self.line_for_share(path_id, now).is_some();
        !path.retired
            && path.coming() == 0
            && self.links[path.link].connections < limit.min(path.ramp)
            && is_full
    }

    /// Whether somebody waits for the room that this path's connection takes.
    pub(super) fn is_wanted_elsewhere(&self, path_id: usize) -> bool {
        if self.connections >= self.connections_max {
            return true;
        }
        let path = &self.paths[path_id];
        let provider = &self.queues[path.queue].route.provider;
        self.connection_shares.first_in_line().take(LINE_LOOKED_AT_MAX).any(|other| {
            let queue = self.queues.get(other).filter(|_| other != path.queue);
            queue.is_some_and(|queue| queue.route.provider == *provider && queue.waiting.waiting() > 0)
        })
    }

    fn connections_to_provider(&self, path_id: usize) -> u32 {
        let path = &self.paths[path_id];
        let key = (path.source, Arc::clone(&self.queues[path.queue].route.provider));
        self.paces.get(&key).map_or(0, |pace| pace.connections)
    }

    /// When another connection may be opened, if not now.
    pub(super) fn opening_block(&self, path_id: usize, now: Timestamp) -> Option<Timestamp> {
        let path = &self.paths[path_id];
        let key = (path.source, Arc::clone(&self.queues[path.queue].route.provider));
        self.paces.get(&key)?.openings?.blocked_until(now)
    }

    pub(super) fn is_paced(&self, path_id: usize) -> bool {
        let path = &self.paths[path_id];
        let provider = &self.queues[path.queue].route.provider;
        let has_bucket =
            self.paces.get(&(path.source, Arc::clone(provider))).is_some_and(|p| p.bucket.is_some());
        has_bucket || self.gates.is_paced(&path.scopes)
    }

    /// As the provider's rules and its pacing say.
    pub(super) fn connections_max(&mut self, path_id: usize, now: Timestamp) -> u32 {
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        let most = route.rules.connections_max;
        if route.is_exempt {
            return most;
        }
        let source = self.paths[path_id].source;
        self.pace(source, &route).pacing.poll(now).connections_max.min(most)
    }

    pub(super) fn pace(&mut self, source: SourceId, route: &Route) -> &mut Pace {
        let (sources, gates) = (&self.sources, &self.gates);
        let pacing = || {
            let address = sources.find(source).map_or(sources::ANY_ADDRESS, |source| source.scope_address());
            let scope = GateScope::SourceProvider { source: address, provider: route.provider.to_string() };
            let mut pacing = Pacing::new(route.rules.pacing_limits());
            // Suspended by a process before this one: it ends with a probe, not at full speed.
            if let Some((until, reason)) = gates.automatic_end(&scope) {
                pacing.restore(until, reason);
            }
            pacing
        };
        self.paces.entry((source, Arc::clone(&route.provider))).or_insert_with(|| Pace {
            pacing: pacing(),
            bucket: route.rules.messages_per_minute.map(Bucket::per_minute),
            connections: 0,
            openings: route.rules.connections_per_minute.map(|rate| Bucket::per_minute(f64::from(rate))),
            was_suspended: false,
        })
    }

    /// What keeps a path from sending now.
    pub(super) fn path_block(&mut self, path_id: usize, now: Timestamp) -> Option<Block> {
        if let Some(reason) = self.paused.values().next() {
            return Some(Block { until: None, why: Why::Paused(reason.clone()) });
        }
        let path = &self.paths[path_id];
        if let Some(until) = path.back_off.blocked_until(now) {
            let why = Why::BackOff { site: path.site.to_string(), reason: path.back_off.reason.clone() };
            return Some(Block { until: Some(until), why });
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
            && source.is_exhausted()
        {
            let paused_reason = source.paused_reason.clone();
            return Some(Block { until: None, why: Why::WarmUp { source: source.name(), paused_reason } });
        }
        self.pace_block(source_id, &route, now)
    }

    fn pace_block(&mut self, source: SourceId, route: &Route, now: Timestamp) -> Option<Block> {
        let provider = &route.provider;
        let pace = self.pace(source, route);
        let told = pace.pacing.poll(now);
        if told.connections_max == 0 {
            let why = Why::Pacing {
                provider: provider.to_string(),
                state: told.state.as_str(),
                reason: told.reason.as_deref().unwrap_or_default().to_owned(),
            };
            return Some(Block { until: told.until, why });
        }
        match (told.per_minute, &mut pace.bucket) {
            (Some(rate), Some(bucket)) => bucket.set_per_minute(rate),
            (Some(rate), slot @ None) => *slot = Some(Bucket::per_minute(rate)),
            (None, slot) => *slot = None,
        }
        let until = pace.bucket.as_ref()?.blocked_until(now)?;
        Some(Block { until: Some(until), why: Why::ProviderRate { provider: provider.to_string() } })
    }

    /// More connections than the limit, which has shrunk.
    pub(super) fn is_superfluous(&mut self, path_id: usize, now: Timestamp) -> bool {
        let limit = self.connections_max(path_id, now);
        let path = &self.paths[path_id];
        let limit = limit.max(1);
        path.retired
            || self.links[path.link].connections > limit
            || self.connections_to_provider(path_id) > limit
    }
}
