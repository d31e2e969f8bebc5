//! Shares: over all sites together, the addresses of a pool take messages in proportion to their weights.
//!
//! Each message is credited to all addresses that could take it, in proportion to their weights; the one that takes it
//! is charged a whole message (smooth weighted round robin). An address that is blocked at a site takes no part there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{SourceId, Timestamp};

use super::Schedule;

/// Maximum number of messages that an address can be owed, so that it does not take all messages for a long time.
const OWED_MAX: f64 = 32.0;
/// At a site, an address waits for another that is owed this many messages more and has taken fewer there.
const OWED_SLACK: f64 = 4.0;
/// Lead that an address may have over another at one site, in messages divided by weight, unless the other is owed
/// more.
const SITE_SLACK: f64 = 4.0;

#[derive(Debug, Default)]
pub(super) struct Shares {
    /// Messages by which an address is behind its share; negative if it is ahead.
    owed: HashMap<SourceId, f64>,
    /// Connection tasks that will ask for work in a moment.
    expected_requests: HashMap<SourceId, i64>,
}

impl Shares {
    /// `taker` takes a message that any of `candidates`, with their weights, could have taken.
    fn take(&mut self, taker: SourceId, candidates: &[(SourceId, f64)]) {
        let total: f64 = candidates.iter().map(|(_, weight)| weight).sum();
        for (source, weight) in candidates {
            let owed = self.owed.entry(*source).or_default();
            *owed = (*owed + weight / total).min(OWED_MAX);
        }
        let owed = self.owed.entry(taker).or_default();
        *owed = (*owed - 1.0).max(-OWED_MAX);
    }

    fn owed(&self, source: SourceId) -> f64 {
        self.owed.get(&source).copied().unwrap_or(0.0)
    }

    /// Messages that the address is owed, less those that its connections will take in a moment.
    fn owed_soon(&self, source: SourceId) -> f64 {
        self.owed(source) - self.expected_requests.get(&source).copied().unwrap_or(0) as f64
    }

    pub(super) fn change_expected_requests(&mut self, source: SourceId, by: i64) {
        *self.expected_requests.entry(source).or_default() += by;
    }
}

impl Schedule {
    /// Whether this path should get the next message rather than the other, if both could take it.
    pub(super) fn comes_before(&self, path_id: usize, other: usize) -> bool {
        let (path, other) = (&self.paths[path_id], &self.paths[other]);
        let owed = self.shares.owed_soon(path.source) - self.shares.owed_soon(other.source);
        // The path whose address is owed more; if both are owed the same, the path with fewer messages at this site.
        if owed.abs() > 1e-6 { owed > 0.0 } else { path.progress < other.progress }
    }

    /// Whether this path is ahead of its share: another path of the pool has more right to the next message, and can
    /// take it.
    pub(super) fn is_ahead(&mut self, path_id: usize, now: Timestamp) -> bool {
        let paths = self.queues[self.paths[path_id].queue].paths.clone();
        if paths.len() < 2 {
            return false;
        }
        let (mine, owed) = (self.paths[path_id].progress, self.shares.owed(self.paths[path_id].source));
        let next = mine + 1.0 / self.weight(self.paths[path_id].source);
        let before = paths.into_iter().find(|other| {
            let path = &self.paths[*other];
            let is_owed = self.shares.owed(path.source) - owed > OWED_SLACK;
            let is_behind = if is_owed {
                next > path.progress + 1.0 / self.weight(path.source)
            } else {
                mine > path.progress + SITE_SLACK
            };
            let is_stuck = || self.stuck_at(*other).is_some_and(|at| at < now);
            is_behind && !path.retired && !is_stuck() && self.path_block(*other, now).is_none()
        });
        let Some(before) = before else { return false };
        if let Some(at) = self.stuck_at(before) {
            // If that path hangs or gets no connection, the others continue at this time.
            self.wake_queue_at(at.plus(Duration::from_millis(1)), self.paths[before].queue);
        }
        true
    }

    fn stuck_at(&self, path_id: usize) -> Option<Timestamp> {
        let path = &self.paths[path_id];
        let provider = Arc::clone(&self.queues[path.queue].route.provider);
        let taken_at = self
            .source_providers
            .get(&(path.source, provider))
            .and_then(|source_provider| source_provider.taken_at);
        path.stuck_at(taken_at)
    }

    /// Counts a message that leaves on this path: credits all addresses that could have taken it.
    pub(super) fn credit_addresses(&mut self, path_id: usize, now: Timestamp) {
        let taker = self.paths[path_id].source;
        let weight = self.weight(taker);
        self.paths[path_id].progress += 1.0 / weight;
        self.paths[path_id].taken_at = Some(now);
        let paths = self.queues[self.paths[path_id].queue].paths.clone();
        if paths.len() < 2 {
            return;
        }
        let mut candidates = vec![(taker, weight)];
        for other in paths.into_iter().filter(|other| *other != path_id) {
            if !self.paths[other].retired && self.path_block(other, now).is_none() {
                let source = self.paths[other].source;
                candidates.push((source, self.weight(source)));
            }
        }
        self.shares.take(taker, &candidates);
    }

    fn weight(&self, source: SourceId) -> f64 {
        self.sources.find(source).map_or(1.0, |source| source.weight)
    }

    /// Removes addresses that no longer exist; new ones start at zero.
    pub(super) fn sweep_shares(&mut self) {
        let mut expected_requests = HashMap::new();
        for (_, path) in &self.paths {
            *expected_requests.entry(path.source).or_default() += i64::from(path.expected_requests());
        }
        self.shares.expected_requests = expected_requests;
        self.shares.owed.retain(|source, _| self.sources.find(*source).is_some());
    }
}
