//! Attempts to connect, from the order of a connection task until a host of the site has answered. A site whose host has
//! not greeted in time counts as silent; beyond the share of silent sites, its attempt makes way for others.

use std::time::Duration;

use postroad_model::Timestamp;

use super::connection_shares::{Counted, Health, Line};
use super::{Action, Schedule, Wake};

/// A host that has not greeted after this time counts as silent.
const GREETING_WAIT: Duration = Duration::from_secs(1);
/// The same while other sites wait for their first connection.
const GREETING_WAIT_IN_A_CROWD: Duration = Duration::from_millis(500);

impl Schedule {
    fn greeting_wait(&self) -> Duration {
        if self.connection_shares.is_crowded() { GREETING_WAIT_IN_A_CROWD } else { GREETING_WAIT }
    }

    /// Its host is being dialled: from now on the time to its greeting counts.
    pub(crate) fn dialling(&mut self, path_id: usize, now: Timestamp) {
        let link_id = self.paths[path_id].link;
        let link = &mut self.links[link_id];
        if link.dialling_since.is_none() && self.paths[path_id].connecting > 0 {
            link.dialling_since = Some(now);
            self.connection_shares.dialling.push_back((now, link_id));
            let wait = self.greeting_wait();
            self.wake_at(now.plus(wait), Wake::Dialling);
        }
    }

    /// A task that lost its connection makes another one.
    pub(crate) fn connecting_again(&mut self, path_id: usize) {
        self.paths[path_id].connecting += 1;
    }

    /// A host of the site has said something.
    pub(crate) fn answered(&mut self, path_id: usize, now: Timestamp) {
        self.note_answer(path_id);
        self.serve_line(Line::New, now);
        self.serve_line(Line::Silent, now);
        self.pump(self.paths[path_id].queue, now);
    }

    pub(super) fn note_answer(&mut self, path_id: usize) {
        let link = &mut self.links[self.paths[path_id].link];
        self.connection_shares.uncount(link.counted.take());
        link.health = Health::Answering;
        link.dialling_since = None;
    }

    /// Its host could not be spoken to, or made no use of its time.
    pub(crate) fn note_silence(&mut self, path_id: usize) {
        self.links[self.paths[path_id].link].health = Health::Silent;
    }

    /// A message went over one of the site's connections.
    pub(super) fn note_use(&mut self, path_id: usize) {
        let link = &mut self.links[self.paths[path_id].link];
        // While an attempt goes without an answer, the site gets no more of them.
        if link.counted.is_none() {
            link.health = Health::Answering;
        }
    }

    /// An attempt to connect is over, however it ended.
    pub(crate) fn connecting_ended(&mut self, path_id: usize, now: Timestamp) {
        let path = &mut self.paths[path_id];
        path.connecting = path.connecting.saturating_sub(1);
        self.uncount_ended(self.paths[path_id].link);
        self.serve_line(Line::New, now);
        self.serve_line(Line::Silent, now);
    }

    /// Connections that are gone are not connecting any more.
    pub(super) fn uncount_ended(&mut self, link_id: usize) {
        let link = &mut self.links[link_id];
        let connecting: u32 = link.paths.iter().map(|id| self.paths[*id].connecting).sum();
        if connecting == 0 {
            self.connection_shares.uncount(link.counted.take());
            link.dialling_since = None;
        } else if let Some(Counted::Silent(connections)) = &mut link.counted {
            self.connection_shares.silent -= connections.saturating_sub(connecting);
            *connections = (*connections).min(connecting);
        }
    }

    /// Hosts that took too long to greet are silent now; those beyond the share of silent sites make way.
    pub(super) fn age_attempts(&mut self, now: Timestamp) {
        let wait = self.greeting_wait();
        while let Some((since, link_id)) = self.connection_shares.dialling.front().copied() {
            let is_current = self.links.get(link_id).is_some_and(|link| link.dialling_since == Some(since));
            if is_current && since.plus(wait) > now {
                self.wake_at(since.plus(wait), Wake::Dialling);
                break;
            }
            self.connection_shares.dialling.pop_front();
            if is_current {
                self.call_silent(link_id);
            }
        }
        self.serve_line(Line::New, now);
    }

    fn call_silent(&mut self, link_id: usize) {
        let link = &mut self.links[link_id];
        link.health = Health::Silent;
        let connecting: u32 = link.paths.iter().map(|id| self.paths[*id].connecting).sum();
        self.connection_shares.uncount(link.counted.replace(Counted::Silent(connecting)));
        self.connection_shares.silent += connecting;
        let mut kept = u32::from(self.connection_shares.silent <= self.connection_shares.silent_max);
        for path in &link.paths {
            for _ in 0..self.paths[*path].connecting {
                if kept > 0 {
                    kept -= 1;
                } else {
                    self.actions.push(Action::GiveWay { path: *path });
                }
            }
        }
    }

    /// The clock went back.
    pub(super) fn shift_attempts_back(&mut self, by: Duration) {
        for (_, link) in &mut self.links {
            link.dialling_since = link.dialling_since.map(|since| since.minus(by));
        }
        for (since, _) in &mut self.connection_shares.dialling {
            *since = since.minus(by);
        }
    }

    /// The time to greet is shorter from now on.
    pub(super) fn hurry_attempts(&mut self) {
        if let Some((since, _)) = self.connection_shares.dialling.front() {
            let at = since.plus(GREETING_WAIT_IN_A_CROWD);
            self.wake_at(at, Wake::Dialling);
        }
    }
}
