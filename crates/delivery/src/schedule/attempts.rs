//! Connection attempts (not delivery attempts). An attempt lasts from the start of the connection task until its site
//! has proved that it answers. For a site that answered lately, that is when the connection accepts messages; for any
//! other site, when it replies to its first message.
//!
//! An attempt that waits too long for its host counts as silent. It is aborted if silent sites hold more than their
//! share, or if its site already has such an attempt. An attempt whose connection accepts messages is never aborted
//! here. It gives room up in other ways: timeouts are shorter while connections are scarce, and a connection that waits
//! for the final reply is parked (`parking.rs`).

use std::time::Duration;

use postroad_model::Timestamp;

use super::connection_shares::{AttemptShare, Health, WaitingLine};
use super::{Action, Schedule, Wake};

/// A host that has not greeted after this time counts as silent, unless it is known to take longer.
const GREETING_WAIT: Duration = Duration::from_secs(1);
const GREETING_WAIT_MAX: Duration = Duration::from_secs(30);
/// Longest time from the host's greeting until the connection accepts messages; after that the host counts as silent.
const SESSION_WAIT: Duration = Duration::from_secs(3);
/// Longest time from when the connection accepts messages until the reply to the first one; after that the host
/// counts as silent.
const REPLY_WAIT: Duration = Duration::from_secs(10);
/// Waits are shortened by this while other sites wait for their first connection.
const CROWDED_WAIT_REDUCTION: Duration = Duration::from_millis(500);
/// A timeout does not make a site silent if the site replied to a message within this time. For aborted messages, see
/// `note_hang`.
const RECENT_REPLY_AGE_MAX: Duration = Duration::from_secs(30);

/// One attempt of a path.
#[derive(Debug)]
pub(super) struct Attempt {
    id: u64,
    /// The share of connections in which the attempt counts.
    share: Option<AttemptShare>,
    dialled_at: Option<Timestamp>,
    /// When the attempt becomes overdue, and so counts as silent.
    overdue_at: Option<Timestamp>,
    /// Whether the connection accepts messages; its site has not replied to one yet.
    is_connected: bool,
}

impl Schedule {
    /// Counts a new attempt.
    pub(super) fn begin_attempt(&mut self, path_id: usize, share: Option<AttemptShare>) -> u64 {
        let id = self.connection_shares.next_attempt_id();
        self.connection_shares.count(share);
        let (dialled_at, overdue_at, is_connected) = (None, None, false);
        self.paths[path_id].attempts.push(Attempt { id, share, dialled_at, overdue_at, is_connected });
        id
    }

    /// A task that lost its connection opens another. `None` if the provider's rules allow no new connection now.
    pub(crate) fn begin_reconnect(&mut self, path_id: usize, now: Timestamp) -> Option<u64> {
        if self.opening_blocked_until(path_id, now).is_some() {
            return None;
        }
        self.count_towards_rate(path_id, now);
        self.end_attempts(path_id, |attempt| attempt.is_connected);
        Some(self.begin_attempt(path_id, None))
    }

    fn find_attempt(&mut self, path_id: usize, id: u64) -> Option<&mut Attempt> {
        self.paths.get_mut(path_id)?.attempts.iter_mut().find(|attempt| attempt.id == id)
    }

    /// A host is being dialled: from now on the time to its greeting counts.
    pub(crate) fn note_dialling(&mut self, path_id: usize, id: u64, now: Timestamp) {
        let known = self.source_sites[self.paths[path_id].source_site].greeted_after;
        let Some(attempt) = self.find_attempt(path_id, id) else { return };
        attempt.dialled_at = Some(now);
        // An attempt that is already in the share of silent sites stays there.
        if attempt.share != Some(AttemptShare::Silent) {
            let wait = GREETING_WAIT.max(known * 2).min(GREETING_WAIT_MAX);
            self.set_overdue_at(path_id, id, now.plus(wait));
        }
    }

    /// Records the greeting. The host has `SESSION_WAIT` more until the connection must accept messages.
    pub(crate) fn note_greeting(&mut self, path_id: usize, id: u64, now: Timestamp) {
        let Some(attempt) = self.find_attempt(path_id, id) else { return };
        let (dialled_at, is_silent) = (attempt.dialled_at, attempt.share == Some(AttemptShare::Silent));
        let source_site = &mut self.source_sites[self.paths[path_id].source_site];
        source_site.greeted_after = dialled_at.map_or(Duration::ZERO, |at| now.since(at));
        if !is_silent {
            self.set_overdue_at(path_id, id, now.plus(SESSION_WAIT));
        }
    }

    /// Records that the connection accepts messages.
    pub(super) fn on_attempt_connected(&mut self, path_id: usize, id: u64, now: Timestamp) {
        if self.health(path_id, now) == Health::Answering {
            return self.on_attempt_ended(path_id, id, now);
        }
        let is_silent = self.is_silent(path_id);
        let Some(attempt) = self.find_attempt(path_id, id) else { return };
        attempt.is_connected = true;
        // Hosts that greet but do not reply to a message stay in the share of silent sites.
        if is_silent && attempt.share == Some(AttemptShare::Silent) {
            return;
        }
        let before = attempt.share.replace(AttemptShare::New);
        self.connection_shares.uncount(before);
        self.connection_shares.count(Some(AttemptShare::New));
        self.set_overdue_at(path_id, id, now.plus(REPLY_WAIT));
    }

    /// An attempt has ended, successfully or not.
    pub(crate) fn on_attempt_ended(&mut self, path_id: usize, id: u64, now: Timestamp) {
        self.end_attempts(path_id, |attempt| attempt.id == id);
        self.serve_line(WaitingLine::New, now);
        self.serve_line(WaitingLine::Silent, now);
    }

    fn end_attempts(&mut self, path_id: usize, which: impl Fn(&Attempt) -> bool) {
        let Some(path) = self.paths.get_mut(path_id) else { return };
        for attempt in path.attempts.extract_if(.., |attempt| which(attempt)) {
            self.connection_shares.uncount(attempt.share);
            if let Some(at) = attempt.overdue_at {
                self.connection_shares.overdue.remove(&(at, path_id, attempt.id));
            }
        }
    }

    /// Ends the attempts of connections that accept messages, so that they count in no share.
    pub(super) fn end_connected_attempts(&mut self, path_id: usize) {
        self.end_attempts(path_id, |attempt| attempt.is_connected);
    }

    /// If the path has more attempts than connections, ends the oldest: they are taken to belong to connections that
    /// have already been closed.
    pub(super) fn end_excess_attempts(&mut self, path_id: usize) {
        let path = &self.paths[path_id];
        let excess = path.attempts.len().saturating_sub(path.connections as usize);
        if let Some(last) = path.attempts[..excess].last().map(|attempt| attempt.id) {
            self.end_attempts(path_id, |attempt| attempt.id <= last);
        }
    }

    /// The site has replied to a message.
    pub(super) fn note_reply(&mut self, path_id: usize, now: Timestamp) {
        let source_site = &mut self.source_sites[self.paths[path_id].source_site];
        source_site.replied_at = Some(now);
        if source_site.health == Health::Answering {
            return;
        }
        source_site.health = Health::Answering;
        let paths = source_site.paths.clone();
        for path in &paths {
            self.end_attempts(*path, |attempt| attempt.is_connected);
        }
        self.serve_line(WaitingLine::New, now);
        self.serve_line(WaitingLine::Silent, now);
        for path in paths {
            self.pump(self.paths[path].queue, now);
        }
    }

    /// A timeout passed while connecting or during a message, or an attempt is overdue. The site counts as silent,
    /// unless it replied to a message within `RECENT_REPLY_AGE_MAX`.
    pub(crate) fn note_silence(&mut self, path_id: usize, now: Timestamp) {
        let source_site = &mut self.source_sites[self.paths[path_id].source_site];
        if source_site.replied_at.is_none_or(|at| now.since(at) >= RECENT_REPLY_AGE_MAX) {
            source_site.health = Health::Silent;
        }
    }

    /// A message begun at `since` was aborted early, because its host did not answer while connections are scarce. The
    /// site counts as silent, unless it has replied to a message since then.
    pub(crate) fn note_hang(&mut self, path_id: usize, since: Timestamp, now: Timestamp) {
        let source_site = &mut self.source_sites[self.paths[path_id].source_site];
        if source_site.replied_at.is_none_or(|at| at < since) {
            source_site.health = Health::Silent;
            self.serve_line(WaitingLine::New, now);
        }
    }

    pub(super) fn is_silent(&self, path_id: usize) -> bool {
        self.source_sites[self.paths[path_id].source_site].health == Health::Silent
    }

    fn set_overdue_at(&mut self, path_id: usize, id: u64, at: Timestamp) {
        let Some(attempt) = self.find_attempt(path_id, id) else { return };
        let before = attempt.overdue_at.replace(at);
        if let Some(before) = before {
            self.connection_shares.overdue.remove(&(before, path_id, id));
        }
        self.connection_shares.overdue.insert((at, path_id, id));
        self.schedule_overdue_wake();
    }

    /// By how much attempts become overdue earlier while sites wait for their first connection.
    fn overdue_shift(&self) -> Duration {
        if self.connection_shares.is_crowded() { CROWDED_WAIT_REDUCTION } else { Duration::ZERO }
    }

    /// Schedules one wake-up for all attempts, at the time when the first becomes overdue.
    pub(super) fn schedule_overdue_wake(&mut self) {
        let Some((at, ..)) = self.connection_shares.overdue.first() else { return };
        let at = at.minus(self.overdue_shift());
        if self.connection_shares.overdue_wake.is_none_or(|known| at < known) {
            self.connection_shares.overdue_wake = Some(at);
            self.wake_at(at, Wake::Attempts);
        }
    }

    /// Wake-up for attempts. Outdated wake-ups have no effect.
    pub(super) fn wake_attempts(&mut self, scheduled_for: Timestamp, now: Timestamp) {
        if self.connection_shares.overdue_wake == Some(scheduled_for) {
            self.mark_overdue_attempts_silent(now);
        }
    }

    /// Counts overdue attempts as silent.
    pub(super) fn mark_overdue_attempts_silent(&mut self, now: Timestamp) {
        self.connection_shares.overdue_wake = None;
        let until = now.plus(self.overdue_shift());
        while let Some((_, path_id, id)) =
            self.connection_shares.overdue.first().filter(|(at, ..)| *at <= until)
        {
            self.mark_silent(*path_id, *id, now);
        }
        self.serve_line(WaitingLine::New, now);
        self.schedule_overdue_wake();
    }

    fn mark_silent(&mut self, path_id: usize, id: u64, now: Timestamp) {
        let is_silent = |attempt: &Attempt| attempt.share == Some(AttemptShare::Silent);
        let source_site = &self.source_sites[self.paths[path_id].source_site];
        let has_another =
            source_site.paths.iter().any(|path| self.paths[*path].attempts.iter().any(is_silent));
        let Some(attempt) = self.find_attempt(path_id, id) else { return };
        let (at, is_connected) = (attempt.overdue_at.take(), attempt.is_connected);
        let before = attempt.share.replace(AttemptShare::Silent);
        if let Some(at) = at {
            self.connection_shares.overdue.remove(&(at, path_id, id));
        }
        self.connection_shares.uncount(before);
        self.connection_shares.count(Some(AttemptShare::Silent));
        self.note_silence(path_id, now);
        // A connection that accepts messages is not aborted here: it gives room up in other ways (see the header).
        if !is_connected && (has_another || self.connection_shares.has_too_many_silent()) {
            self.actions.push(Action::AbortAttempt { attempt: id });
        }
    }

    /// The clock went back.
    pub(super) fn shift_attempts_back(&mut self, by: Duration) {
        for (_, source_site) in &mut self.source_sites {
            source_site.replied_at = source_site.replied_at.map(|at| at.minus(by));
        }
        for (_, path) in &mut self.paths {
            for attempt in &mut path.attempts {
                attempt.dialled_at = attempt.dialled_at.map(|at| at.minus(by));
                attempt.overdue_at = attempt.overdue_at.map(|at| at.minus(by));
            }
        }
        let overdue = std::mem::take(&mut self.connection_shares.overdue);
        self.connection_shares.overdue =
            overdue.into_iter().map(|(at, path, id)| (at.minus(by), path, id)).collect();
    }
}
