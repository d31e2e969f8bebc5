//! Wake-ups: when the schedule examines waiting servers, lanes, queues, gates and connection attempts again. Each
//! stores the time of its next wake-up. A wake-up for another time was replaced by an earlier one, and is ignored: if
//! both took effect, both would schedule new ones, and their number would grow without end.

use std::cmp::Reverse;

use postroad_model::{ServerId, Timestamp};

use super::{NEXT_TURN_AFTER, Schedule};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wake {
    Server(ServerId),
    Lane(usize),
    Queue(usize),
    Gates,
    /// Connection attempts are overdue.
    Attempts,
}

impl Schedule {
    /// Examines what this wake-up was scheduled for.
    pub(super) fn wake(&mut self, at: Timestamp, wake: Wake, now: Timestamp) {
        match wake {
            Wake::Server(server) => {
                if self.servers.get(&server).is_some_and(|gate| gate.wake_at == Some(at)) {
                    self.readmit_server(server, now);
                }
            }
            Wake::Lane(lane) => {
                if self.lanes.get(lane).is_some_and(|lane| lane.is_woken_at(at)) {
                    self.wake_lane(lane, now);
                }
            }
            Wake::Queue(queue) => {
                if let Some(state) = self.queues.get_mut(queue).filter(|state| state.wake_at == Some(at)) {
                    state.wake_at = None;
                    self.pump(queue, now);
                }
            }
            Wake::Attempts => self.wake_attempts(at, now),
            Wake::Gates => {
                if self.gates_wake_at == Some(at) {
                    self.gates_wake_at = None;
                    self.wake_at_end_of_gates(now);
                    self.readmit_all(now);
                }
            }
        }
    }

    /// Schedules a wake-up for the next end of a gate, unless one is scheduled for that time or earlier.
    pub(super) fn wake_at_end_of_gates(&mut self, now: Timestamp) {
        if let Some(end) = self.gates.next_end(now)
            && self.gates_wake_at.is_none_or(|known| end < known)
        {
            self.gates_wake_at = Some(end);
            self.wake_at(end, Wake::Gates);
        }
    }

    /// Schedules a wake-up of the queue at `at`, unless an earlier one is scheduled: one is enough for all its
    /// messages.
    pub(super) fn wake_queue_at(&mut self, at: Timestamp, queue: usize) {
        let state = &mut self.queues[queue];
        if state.wake_at.is_none_or(|known| at < known) {
            state.wake_at = Some(at);
            self.wake_at(at, Wake::Queue(queue));
        }
    }

    pub(super) fn wake_at(&mut self, at: Timestamp, wake: Wake) {
        self.wakes.push(Reverse((at, wake)));
    }

    /// Schedules a wake-up of the server at `at`, unless an earlier one is scheduled.
    pub(super) fn wake_server_at(&mut self, at: Timestamp, server: ServerId) {
        if let Some(server_gate) = self.servers.get_mut(&server)
            && server_gate.wake_at.is_none_or(|known| at < known)
        {
            server_gate.wake_at = Some(at);
            self.wake_at(at, Wake::Server(server));
        }
    }

    /// Lets queues that left the server out of their turns try again: one queue if a send rate applies to the server,
    /// else all.
    pub(super) fn readmit_server(&mut self, server: ServerId, now: Timestamp) {
        let Some(server_gate) = self.servers.get_mut(&server) else { return };
        server_gate.wake_at = None;
        if let Some(block) =
            server_gate.last_block.as_mut().filter(|_| !server_gate.removed_from_rings.is_empty())
        {
            block.end(now);
        }
        let queues: Vec<usize> = if server_gate.has_rate() {
            // One message may pass, so one queue gets the turn. That queue then leaves the server out again, which
            // schedules the next turn.
            let after =
                server_gate.removed_from_rings.range(server_gate.last_readmitted + 1..).next().copied();
            let next = after.or_else(|| server_gate.removed_from_rings.first().copied());
            server_gate.last_readmitted = next.unwrap_or(0);
            next.into_iter().collect()
        } else {
            server_gate.removed_from_rings.iter().copied().collect()
        };
        for queue in queues {
            if let Some(server_gate) = self.servers.get_mut(&server) {
                server_gate.removed_from_rings.remove(&queue);
            }
            if let Some(state) = self.queues.get_mut(queue) {
                state.waiting.readmit_server(server);
                self.pump(queue, now);
            }
        }
        if let Some(server_gate) = self.servers.get_mut(&server)
            && server_gate.wake_at.is_none()
            && !server_gate.removed_from_rings.is_empty()
        {
            // The queue with the turn may have no use for it; so the other queues are examined soon.
            let soon = server_gate.block(&self.accounts, now).and_then(|block| block.until);
            let at = soon.unwrap_or_else(|| now.plus(NEXT_TURN_AFTER));
            server_gate.wake_at = Some(at);
            self.wake_at(at, Wake::Server(server));
        }
    }

    /// Examines everything that waits. Call this after a change that may unblock any server or lane.
    pub(super) fn readmit_all(&mut self, now: Timestamp) {
        for server in self.servers.keys().copied().collect::<Vec<_>>() {
            self.readmit_server(server, now);
        }
        for lane in self.lanes.iter().map(|(id, _)| id).collect::<Vec<_>>() {
            self.wake_lane(lane, now);
        }
        self.pump_all(now);
    }

    pub(super) fn pump_all(&mut self, now: Timestamp) {
        for queue in self.queues.iter().map(|(id, _)| id).collect::<Vec<_>>() {
            self.pump(queue, now);
        }
    }
}
