//! A receiver, or one of its domains, that refuses everything: only a probe message is sent from time to time, until
//! one is accepted.

use std::time::Duration;

use postroad_model::{ServerId, Timestamp};

use super::probe::Probe;
use super::reason::Reason;

/// Pause before the first probe.
const PAUSE_FIRST: Duration = Duration::from_secs(20);
/// Pause between probes until `RARER_PROBES_AFTER`: the end of the standstill is noticed within a minute.
const PAUSE: Duration = Duration::from_secs(45);
/// After this time probes become rarer.
const RARER_PROBES_AFTER: Duration = Duration::from_mins(30);
const PAUSE_MAX: Duration = Duration::from_mins(5);

#[derive(Debug, Clone, Default)]
pub struct Standstill {
    probe: Probe,
    /// Refusals without an acceptance in between.
    refused_in_a_row: u32,
    since: Option<Timestamp>,
    last_pause: Duration,
    reason: Option<Reason>,
    /// The only server whose mail was refused; `None` if mail of several was, or if that is unknown.
    only_server: Option<ServerId>,
}

impl Standstill {
    /// A message was refused; `needed` refusals in a row begin a standstill. Returns whether this refusal began it.
    pub fn on_refused(&mut self, needed: u32, reason: &Reason, now: Timestamp) -> bool {
        if self.probe.is_waiting(now) {
            return false;
        }
        self.refused_in_a_row = self.refused_in_a_row.saturating_add(1);
        let was_unrestricted = self.probe.is_unrestricted();
        if was_unrestricted && self.refused_in_a_row < needed {
            return false;
        }
        let since = *self.since.get_or_insert(now);
        self.last_pause = if was_unrestricted {
            PAUSE_FIRST
        } else if now.since(since) < RARER_PROBES_AFTER {
            PAUSE
        } else {
            self.last_pause.mul_f64(1.5).clamp(PAUSE, PAUSE_MAX)
        };
        self.probe.pause_until(now.plus(self.last_pause));
        self.reason = Some(reason.clone());
        was_unrestricted
    }

    /// Ends the standstill, if there is one, and forgets all refusals. Returns whether there was a standstill.
    pub fn end(&mut self) -> bool {
        let was_stopped = !self.probe.is_unrestricted();
        if was_stopped || self.refused_in_a_row > 0 {
            *self = Self::default();
        }
        was_stopped
    }

    /// Records that mail of this server was refused, and mail of no other. Call this when such refusals begin a
    /// standstill.
    pub fn set_only_server(&mut self, server: ServerId) {
        self.only_server = Some(server);
    }

    /// Records that mail of this server was refused during the standstill. If another server was the only one until
    /// now, there is no only server any more.
    pub fn note_server(&mut self, server: ServerId) {
        self.only_server = self.only_server.filter(|only| *only == server);
    }

    /// The only server whose mail was refused, before and during the standstill; `None` if there is no such server.
    pub fn only_server(&self) -> Option<ServerId> {
        self.only_server.filter(|_| self.is_stopped())
    }

    pub fn is_stopped(&self) -> bool {
        !self.probe.is_unrestricted()
    }

    /// Whether no refusals are remembered.
    pub fn is_clear(&self) -> bool {
        self.refused_in_a_row == 0 && self.probe.is_unrestricted()
    }

    pub fn blocked_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.probe.blocked_until(now)
    }

    /// Call right before a message is sent. During a standstill, that message is the probe.
    pub fn on_send(&mut self, now: Timestamp) {
        self.probe.on_send(now);
    }

    pub fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// The receiver's reply.
    pub fn reason(&self) -> Reason {
        self.reason.clone().unwrap_or_default()
    }

    pub fn shift_back(&mut self, by: Duration) {
        self.probe.shift_back(by);
        self.since = self.since.map(|since| since.minus(by));
    }
}
