//! What connections tell the schedule: how it went, and that they are gone.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::{GateScope, ServerId, SourceId, Timestamp};

use super::{Action, Line, Schedule, sources};

impl Schedule {
    /// The size turned out to be large.
    pub(crate) fn charge(&mut self, path_id: usize, server: ServerId, bytes: u64) {
        let queue = self.paths[path_id].queue;
        self.queues[queue].waiting.charge(server, super::cost(bytes) - 1);
    }

    /// The connection is there and the peer has greeted.
    pub(crate) fn connected(&mut self, path_id: usize) {
        self.paths[path_id].back_off.clear();
        self.paths[path_id].connecting = self.paths[path_id].connecting.saturating_sub(1);
        self.note_answer(path_id);
    }

    /// No host of the site could be spoken to: nothing more from here for a while.
    pub(crate) fn connect_failed(&mut self, path_id: usize, reason: String, now: Timestamp) {
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        let slow_start = route.rules.slow_start_connections.max(1);
        self.note_silence(path_id);
        let path = &mut self.paths[path_id];
        path.ramp = slow_start;
        // Connections that fail together are one failure.
        if path.back_off.blocked_until(now).is_none() {
            let pauses: &[Duration] = if route.is_exempt { &[Duration::from_secs(1)] } else { &self.pauses };
            path.back_off.failed(now, pauses, reason);
        }
    }

    /// A message was accepted: more connections may be tried, and the pace recovers.
    pub(crate) fn accepted(&mut self, path_id: usize, now: Timestamp) {
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        let source = self.paths[path_id].source;
        self.paths[path_id].ramp = self.paths[path_id].ramp.saturating_add(1).min(1_000);
        self.note_use(path_id);
        if !route.is_exempt {
            let pace = self.pace(source, &route);
            pace.pacing.on_accepted(now);
            pace.was_suspended = false;
        }
        let queue = self.paths[path_id].queue;
        self.pump(queue, now);
    }

    /// The other side asked for less.
    pub(crate) fn throttled(&mut self, path_id: usize, reason: &str, now: Timestamp) {
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        if route.is_exempt {
            return;
        }
        let source = self.paths[path_id].source;
        let address = self.sources.find(source).map_or(sources::ANY_ADDRESS, |source| source.scope_address());
        let pace = self.pace(source, &route);
        pace.pacing.on_throttled(now, reason);
        let told = pace.pacing.poll(now);
        let is_suspended = told.connections_max == 0;
        if is_suspended
            && !std::mem::replace(&mut pace.was_suspended, is_suspended)
            && let Some(until) = told.until
        {
            self.actions.push(Action::Suspend {
                source: address,
                provider: Arc::clone(&route.provider),
                until,
                reason: reason.to_owned(),
            });
        }
    }

    /// An operator lifted a suspension before its time: the next message decides.
    pub(super) fn probe_again(&mut self, scope: &GateScope, now: Timestamp) {
        let GateScope::SourceProvider { source, provider } = scope else { return };
        for ((id, name), pace) in &mut self.paces {
            let is_meant = self.sources.find(*id).is_some_and(|known| known.scope_address() == *source);
            if is_meant && **name == **provider {
                pace.pacing.restore(now, "lifted by an operator");
                pace.was_suspended = false;
            }
        }
    }

    /// The outcome of a message that this path carried is stored.
    pub(crate) fn settled(&mut self, source: SourceId, sent: bool) {
        self.sources.settled(source, sent);
    }

    /// A connection task has ended.
    pub(crate) fn closed(&mut self, path_id: usize, left: Left, now: Timestamp) {
        let path = &mut self.paths[path_id];
        let coming = path.coming();
        path.connections -= 1;
        path.idle -= u32::from(left != Left::Working);
        path.notified -= u32::from(left == Left::Woken).min(path.notified);
        path.notified = path.notified.min(path.idle);
        let change = i64::from(path.coming()) - i64::from(coming);
        self.shares.change_coming(path.source, change);
        self.links[path.link].connections -= 1;
        self.connections -= 1;
        let (queue, source) = (path.queue, path.source);
        let route = Arc::clone(&self.queues[queue].route);
        self.pace(source, &route).connections -= 1;
        self.count_closing(path_id);
        // The others at the same site first, then those who wait longest: this queue has just had its connection.
        for other in self.links[self.paths[path_id].link].paths.clone() {
            let other = self.paths[other].queue;
            if other != queue {
                self.pump(other, now);
            }
        }
        for line in [Line::General, Line::New, Line::Silent] {
            self.serve_line(line, now);
        }
        self.pump(queue, now);
    }
}

/// What a connection task was doing when it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Working,
    /// It had been told to wait.
    Waiting,
    /// It had been told to wait, and then that there is work.
    Woken,
}
