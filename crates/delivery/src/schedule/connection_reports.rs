//! Reports of connection tasks to the schedule: the size of a message, a new connection, a failed one, a stored
//! outcome, and the end of the task.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::{ServerId, Timestamp};

use super::{CountedSource, Schedule, WaitingLine};
use crate::pacing::Reason;

/// Pause of a path whose site's addresses were not looked up, because too many look-ups are waiting.
const BUSY_PAUSE: Duration = Duration::from_secs(5);

impl Schedule {
    /// Charges the server's turns for the size of a message, which is known only once the message is read.
    pub(crate) fn charge(&mut self, path_id: usize, server: ServerId, bytes: u64) {
        let queue = self.paths[path_id].queue;
        self.queues[queue].waiting.charge(server, super::turn_cost(bytes) - 1);
    }

    /// A connection is open and accepts messages; `is_first`: it is the first of its connection task.
    pub(crate) fn on_connected(&mut self, path_id: usize, attempt: u64, is_first: bool, now: Timestamp) {
        let path = &mut self.paths[path_id];
        path.back_off.clear();
        path.reached_at = Some(now);
        let source_site = &mut self.source_sites[path.source_site];
        source_site.open += u32::from(is_first);
        source_site.connection_limit.on_accepted(source_site.open, now);
        self.on_attempt_connected(path_id, attempt, now);
    }

    /// No host of the site could be reached and none replied. If other connections are open, limits the site to those
    /// and returns true. `was_connected`: this task had an open connection itself.
    pub(crate) fn limit_to_open_connections(
        &mut self,
        path_id: usize,
        was_connected: bool,
        now: Timestamp,
    ) -> bool {
        let path = &self.paths[path_id];
        let source_site = &mut self.source_sites[path.source_site];
        let others = source_site.open.saturating_sub(u32::from(was_connected));
        if others == 0 || self.queues[path.queue].route.is_exempt {
            return false;
        }
        source_site.connection_limit.on_refused(others, &Reason::default(), now);
        source_site.evidence_at = Some(now);
        true
    }

    /// The site's addresses were not looked up, because too many look-ups are waiting.
    pub(crate) fn on_lookups_busy(&mut self, path_id: usize, reason: String, now: Timestamp) {
        self.paths[path_id].back_off.pause(now, BUSY_PAUSE, reason);
    }

    /// No host of the site accepts messages: this path pauses.
    pub(crate) fn on_connect_failed(&mut self, path_id: usize, reason: String, now: Timestamp) {
        let route = Arc::clone(&self.queues[self.paths[path_id].queue].route);
        let slow_start = route.rules.slow_start_connections.max(1);
        let path = &mut self.paths[path_id];
        path.ramp = slow_start;
        // Connections that fail together count as one failure.
        if path.back_off.blocked_until(now).is_none() {
            let pauses: &[Duration] = if route.is_exempt { &[Duration::from_secs(1)] } else { &self.pauses };
            if path.back_off.on_failure(now, path.reached_at, pauses, reason) {
                path.ramp = 1;
            }
            let since = path.back_off.since();
            let others = &self.queues[path.queue].paths;
            let others_reached = others.iter().any(|other| {
                let reached_at = self.paths[*other].reached_at;
                *other != path_id && since.is_some() && reached_at >= since
            });
            self.paths[path_id].back_off.only_this_address_fails |= others_reached;
        }
    }

    /// The outcome of a message from this source is stored, or the message was not sent after all.
    pub(crate) fn on_settled(&mut self, source: &CountedSource, sent: bool) {
        self.sources.on_settled(source, sent);
    }

    /// A connection task has ended.
    pub(crate) fn on_closed(
        &mut self,
        path_id: usize,
        ended_while: EndedWhile,
        was_connected: bool,
        now: Timestamp,
    ) {
        let path = &mut self.paths[path_id];
        let expected_requests = path.expected_requests();
        self.source_sites[path.source_site].open -= u32::from(was_connected);
        path.connections -= 1;
        path.idle -= u32::from(ended_while != EndedWhile::Working);
        path.notified -= u32::from(ended_while == EndedWhile::Woken).min(path.notified);
        path.notified = path.notified.min(path.idle);
        let change = i64::from(path.expected_requests()) - i64::from(expected_requests);
        self.shares.change_expected_requests(path.source, change);
        self.source_sites[path.source_site].connections -= 1;
        self.connections -= 1;
        let (queue, source) = (path.queue, path.source);
        let route = Arc::clone(&self.queues[queue].route);
        self.source_provider(source, &route).connections -= 1;
        self.count_closing(path_id);
        // The other queues at the same site may connect first, then the waiting lines. This queue comes last, because
        // it has just had a connection.
        for other in self.source_sites[self.paths[path_id].source_site].paths.clone() {
            let other = self.paths[other].queue;
            if other != queue {
                self.pump(other, now);
            }
        }
        for line in [WaitingLine::General, WaitingLine::New, WaitingLine::Silent] {
            self.serve_line(line, now);
        }
        self.pump(queue, now);
    }
}

/// State of a connection task when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndedWhile {
    Working,
    /// The schedule had returned `Next::Wait`.
    Waiting,
    /// The schedule had returned `Next::Wait`, and then woken the task for work.
    Woken,
}
