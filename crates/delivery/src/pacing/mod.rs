//! Adaptive pacing of one source address at one provider: a receiver that says "slower" is believed.
//!
//! ```text
//! normal ──throttled──> slowed ──again and again──> suspended ──time──> probing ──accepted──> recovering ──> normal
//!    ^                    │                             ^                  │                        │
//!    └──quiet minutes─────┘                             └────throttled─────┘       (throttled: slowed)
//! ```
//!
//! A pure state machine: time is an argument, nothing is done but counting. Failed connections are not its business;
//! they are the path's own back-off.

mod pace;

use std::sync::Arc;
use std::time::Duration;

use postroad_model::Timestamp;

pub use self::pace::{Pace, PacingLimits, PacingState};

/// Replies to what was already under way when the first one came tell nothing new.
const SIGNAL_INTERVAL: Duration = Duration::from_secs(30);
/// So many signals in this time, and slowing down does not help.
const SUSPEND_SIGNALS: u32 = 4;
const SUSPEND_WINDOW: Duration = Duration::from_mins(5);
/// After so many accepted messages a signal is the first of its kind: the receiver takes mail, just not faster.
const ACCEPTED_ENOUGH: u32 = 20;
const SUSPENSION_FIRST: Duration = Duration::from_mins(5);
const SUSPENSION_MAX: Duration = Duration::from_hours(1);
/// How long nothing may be throttled before the pace rises.
const QUIET: Duration = Duration::from_mins(1);
const SLOWED_STEP: f64 = 1.0 / 8.0;
const RECOVERING_START: f64 = 1.0 / 8.0;
const PROBES_PER_MINUTE: f64 = 6.0;

/// What pacing knows of one (source, provider).
#[derive(Debug, Clone)]
pub struct Pacing {
    limits: PacingLimits,
    phase: Phase,
    /// Since the throttling began: how many signals counted, the first and the latest of them.
    signals: u32,
    first_signal_at: Option<Timestamp>,
    last_signal_at: Option<Timestamp>,
    accepted_since_signal: u32,
    /// Suspensions since the last normal state.
    suspensions: u32,
    reason: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    Normal,
    /// `share` of the limits, until a quiet minute from `since` on is over.
    Slowed {
        share: f64,
        since: Timestamp,
    },
    Suspended {
        until: Timestamp,
    },
    Probing,
    Recovering {
        share: f64,
        since: Timestamp,
    },
}

impl Pacing {
    pub fn new(limits: PacingLimits) -> Self {
        Self {
            limits,
            phase: Phase::Normal,
            signals: 0,
            first_signal_at: None,
            last_signal_at: None,
            accepted_since_signal: 0,
            suspensions: 0,
            reason: None,
        }
    }

    /// A suspension that was stored before a restart goes on.
    pub fn restore(&mut self, until: Timestamp, reason: &str) {
        self.phase = Phase::Suspended { until };
        self.suspensions = self.suspensions.max(1);
        self.reason = Some(reason.into());
    }

    /// The receiver asked for less: a reply whose rule says `throttle`. `reason` is its words.
    pub fn on_throttled(&mut self, now: Timestamp, reason: &str) {
        self.advance(now);
        match self.phase {
            // The last replies to what was sent before.
            Phase::Suspended { .. } => {}
            Phase::Probing => self.suspend(now, reason),
            Phase::Normal => self.slow_down(now, 1.0, reason),
            Phase::Slowed { share, .. } | Phase::Recovering { share, .. } => {
                self.slow_down(now, share, reason);
            }
        }
    }

    /// The receiver took a message.
    pub fn on_accepted(&mut self, now: Timestamp) {
        self.advance(now);
        self.accepted_since_signal = self.accepted_since_signal.saturating_add(1);
        if self.phase == Phase::Probing {
            self.phase = Phase::Recovering { share: RECOVERING_START, since: now };
        }
    }

    /// What is allowed now.
    pub fn poll(&mut self, now: Timestamp) -> Pace {
        self.advance(now);
        let (state, until) = match self.phase {
            Phase::Normal => (PacingState::Normal, None),
            Phase::Slowed { since, .. } => (PacingState::Slowed, Some(since.plus(QUIET))),
            Phase::Suspended { until } => (PacingState::Suspended, Some(until)),
            Phase::Probing => (PacingState::Probing, None),
            Phase::Recovering { since, .. } => (PacingState::Recovering, Some(since.plus(QUIET))),
        };
        let (connections_max, per_minute) = match self.phase {
            Phase::Normal => (self.limits.connections_max, self.limits.per_minute),
            Phase::Suspended { .. } => (0, Some(0.0)),
            Phase::Probing => (1, Some(self.limits.at_most(PROBES_PER_MINUTE))),
            Phase::Slowed { share, .. } | Phase::Recovering { share, .. } => self.limits.share_of(share),
        };
        Pace { connections_max, per_minute, state, until, reason: self.reason.clone() }
    }

    /// The clock went back by so much.
    pub fn shift_back(&mut self, by: Duration) {
        for at in [&mut self.first_signal_at, &mut self.last_signal_at].into_iter().flatten() {
            *at = at.minus(by);
        }
        match &mut self.phase {
            Phase::Slowed { since: at, .. }
            | Phase::Recovering { since: at, .. }
            | Phase::Suspended { until: at } => *at = at.minus(by),
            Phase::Normal | Phase::Probing => {}
        }
    }

    /// What time alone changes.
    fn advance(&mut self, now: Timestamp) {
        loop {
            self.phase = match self.phase {
                Phase::Suspended { until } if now >= until => Phase::Probing,
                Phase::Slowed { share, since } if now.since(since) >= QUIET => {
                    self.risen(share + SLOWED_STEP, |share| Phase::Slowed { share, since: since.plus(QUIET) })
                }
                Phase::Recovering { share, since } if now.since(since) >= QUIET => {
                    self.risen(share * 2.0, |share| Phase::Recovering { share, since: since.plus(QUIET) })
                }
                Phase::Normal
                | Phase::Probing
                | Phase::Slowed { .. }
                | Phase::Suspended { .. }
                | Phase::Recovering { .. } => return,
            };
        }
    }

    fn risen(&mut self, share: f64, phase: impl FnOnce(f64) -> Phase) -> Phase {
        if share < 1.0 {
            return phase(share);
        }
        self.signals = 0;
        self.suspensions = 0;
        self.reason = None;
        Phase::Normal
    }

    fn slow_down(&mut self, now: Timestamp, share: f64, reason: &str) {
        if self.last_signal_at.is_some_and(|last| now.since(last) < SIGNAL_INTERVAL) {
            return;
        }
        let is_new = self.first_signal_at.is_none_or(|first| now.since(first) > SUSPEND_WINDOW);
        if is_new || self.accepted_since_signal >= ACCEPTED_ENOUGH {
            self.signals = 0;
        }
        if self.signals == 0 {
            self.first_signal_at = Some(now);
        }
        self.signals += 1;
        self.last_signal_at = Some(now);
        self.accepted_since_signal = 0;
        if self.signals >= SUSPEND_SIGNALS {
            self.suspend(now, reason);
        } else {
            let share = (share / 2.0).max(self.limits.share_min());
            self.phase = Phase::Slowed { share, since: now };
            self.reason = Some(reason.into());
        }
    }

    fn suspend(&mut self, now: Timestamp, reason: &str) {
        let doublings = self.suspensions.min(16);
        let duration = SUSPENSION_FIRST.saturating_mul(1 << doublings).min(SUSPENSION_MAX);
        self.suspensions = self.suspensions.saturating_add(1);
        self.signals = 0;
        self.first_signal_at = None;
        self.phase = Phase::Suspended { until: now.plus(duration) };
        self.reason = Some(reason.into());
    }
}

#[cfg(test)]
mod tests;
