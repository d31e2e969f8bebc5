//! Estimate of the messages per minute that a receiver accepts from one source address. After a refusal sending pauses
//! and continues below the reached rate; `curve.rs` raises the rate again.

use std::time::Duration;

use postroad_model::Timestamp;

use super::curve::{Curve, Knowledge};
use super::last_minute::LastMinute;
use super::probe::Probe;
use super::reason::Reason;

/// Shares of the reached rate to continue with: after one refusal, after another soon after it, and after the receiver
/// accepted nothing for more than `LONG_PAUSE`.
const SHARE_AFTER_REFUSAL: f64 = 0.9;
const SHARE_AFTER_CLOSE_REFUSALS: f64 = 0.75;
const SHARE_AFTER_LONG_PAUSE: f64 = 0.5;
const LONG_PAUSE: Duration = Duration::from_secs(15);
/// The first pause after a refusal lasts as long as this many messages need at the reached rate, but within `PAUSE_MIN`
/// and `PAUSE_FIRST_MAX`.
const MESSAGES_PER_PAUSE: f64 = 2.5;
const PAUSE_MIN: Duration = Duration::from_secs(2);
const PAUSE_FIRST_MAX: Duration = Duration::from_secs(12);
const PAUSE_MAX: Duration = Duration::from_secs(25);
/// For refusals closer together than this, the estimate mixes the allowed rate with the measured one.
const CLOSE_TOGETHER: Duration = Duration::from_secs(30);
/// Only a refusal at least this long after the previous one shows that the rate allowed at that moment was too high.
const TRIED_RATE_COUNTS_AFTER: Duration = Duration::from_secs(45);
/// Limits above this rate are dropped.
const UNLIMITED_PER_MINUTE: f64 = 60_000.0;
/// A limit expires after this time without a refusal.
const AGE_MAX: Duration = Duration::from_hours(6);
/// Timers fire late; at most this much of the delay is caught up.
const LAG_MAX: Duration = Duration::from_millis(50);
/// First rate after a standstill, if no rate is known.
const AFTER_STANDSTILL_PER_MINUTE: f64 = 120.0;

#[derive(Debug, Clone, Default)]
pub struct RateEstimate {
    /// `None` while the rate is not limited.
    curve: Option<Curve>,
    pause: Probe,
    last_pause: Duration,
    /// Time since which the receiver has accepted nothing.
    paused_since: Option<Timestamp>,
    /// Whether the last refusal, not counting refused probes, came soon after the one before it.
    was_close: bool,
    /// Time from which the rate allows the next message.
    next_at: Option<Timestamp>,
    /// Time of the last message.
    taken_at: Option<Timestamp>,
    last_minute: LastMinute,
    refused_at: Option<Timestamp>,
    /// Time of the last refusal that made a new curve.
    estimated_at: Option<Timestamp>,
    accepted_since_refusal: u32,
    /// Time since which messages were accepted without a gap.
    active_since: Option<Timestamp>,
    accepted_at: Option<Timestamp>,
    reason: Option<Reason>,
}

impl RateEstimate {
    /// Restores an estimate of another process, or an older one of this process.
    pub fn restored(per_minute: f64, reason: Reason, now: Timestamp) -> Self {
        let mut curve = Curve::new(per_minute, Knowledge::Measured, now);
        curve.restart(SHARE_AFTER_REFUSAL, now);
        Self { curve: Some(curve), reason: Some(reason), ..Self::default() }
    }

    /// Highest rate in messages a minute; `None` for unlimited.
    pub fn per_minute(&mut self, now: Timestamp) -> Option<f64> {
        let curve = self.curve?;
        let rate = curve.per_minute();
        if rate >= UNLIMITED_PER_MINUTE || now.since(curve.since) > AGE_MAX {
            self.curve = None;
            self.reason = None;
            return None;
        }
        Some(rate)
    }

    /// The rate that was reached at the last refusal, and the receiver's reply. `None` if there is no limit, or if the
    /// limit is still searched for.
    pub fn known(&self) -> Option<(f64, Reason)> {
        let curve = self.curve.filter(|curve| curve.knowledge != Knowledge::Search)?;
        Some((curve.reached, self.reason()))
    }

    /// When the receiver last replied that sending is too fast, in this process.
    pub fn refused_at(&self) -> Option<Timestamp> {
        self.refused_at
    }

    /// The receiver's last reply that sending is too fast; empty if the rate was not limited by a reply.
    pub fn reason(&self) -> Reason {
        self.reason.clone().unwrap_or_default()
    }

    /// The receiver replied that sending is too fast.
    pub fn on_too_fast(&mut self, reason: &Reason, now: Timestamp) {
        if self.pause.is_waiting(now) {
            // The reply to a message that was already being sent.
            return;
        }
        self.reason = Some(reason.clone());
        let since_refusal = self.refused_at.map_or(Duration::MAX, |at| now.since(at));
        if !self.pause.is_unrestricted() || self.is_minute_full(since_refusal, now) {
            // The probe was refused, or the receiver's minute is still full: pause for longer.
            self.was_close |= self.pause.is_unrestricted();
            self.paused_since.get_or_insert(now);
            self.last_pause = self.last_pause.mul_f64(2.4).min(PAUSE_MAX);
        } else {
            let tried =
                self.per_minute(now).filter(|_| since_refusal >= TRIED_RATE_COUNTS_AFTER).unwrap_or_default();
            let (reached, knowledge) = self.reached_rate(now);
            let curve = Curve::new(reached, knowledge, now).with_tried_rate(tried);
            self.curve = Some(curve);
            self.estimated_at = Some(now);
            self.was_close = since_refusal < CLOSE_TOGETHER;
            self.paused_since = Some(now);
            let pause_secs =
                if knowledge == Knowledge::Search { 0.0 } else { MESSAGES_PER_PAUSE * 60.0 / curve.reached };
            self.last_pause = Duration::from_secs_f64(pause_secs).clamp(PAUSE_MIN, PAUSE_FIRST_MAX);
        }
        self.pause.pause_until(now.plus(self.last_pause));
        self.refused_at = Some(now);
        self.accepted_since_refusal = 0;
    }

    /// Whether this refusal may still be due to messages accepted before the previous refusal, because receivers
    /// often count over a minute. Then the estimate stays. If the rate was measured, this is assumed in two cases:
    /// for the first refusal soon after another, and for any refusal within a minute after an estimate far below the
    /// tried rate.
    fn is_minute_full(&self, since_refusal: Duration, now: Timestamp) -> bool {
        let Some(curve) = self.curve.filter(|curve| curve.knowledge == Knowledge::Measured) else {
            return false;
        };
        let is_first_close = !self.was_close && since_refusal < CLOSE_TOGETHER;
        let is_recent = self.estimated_at.is_some_and(|at| now.since(at) < Duration::from_mins(1));
        is_first_close || (curve.is_after_overshoot() && is_recent)
    }

    /// The rate that was reached until now, and the confidence in it.
    fn reached_rate(&mut self, now: Timestamp) -> (f64, Knowledge) {
        let in_last_minute = f64::from(self.last_minute.sum(now));
        let active_for = self.active_since.map_or(Duration::ZERO, |since| now.since(since));
        let rate = self.per_minute(now);
        let (Some(rate), Some(curve)) = (rate, self.curve) else {
            let is_short = active_for < Duration::from_secs(40);
            return (in_last_minute, if is_short { Knowledge::Search } else { Knowledge::Measured });
        };
        let since_refusal = self.refused_at.map_or(active_for, |at| now.since(at));
        let accepted = f64::from(self.accepted_since_refusal);
        let measured = accepted * 60.0 / since_refusal.as_secs_f64().max(0.5);
        if curve.knowledge == Knowledge::Search {
            // The last increase went beyond the limit.
            return (rate.min(measured.max(rate * 0.6)), Knowledge::Rough);
        }
        if since_refusal >= CLOSE_TOGETHER {
            let is_steady = active_for >= Duration::from_secs(50);
            let all_since_refusal = accepted >= in_last_minute;
            let reached = match (is_steady, all_since_refusal) {
                // Mail flowed for almost the whole last minute: the minute's count is the rate.
                (true, _) => in_last_minute,
                // Mail flowed only since the refusal, for a part of the minute: the higher value is the rate.
                (false, true) => measured.max(in_last_minute),
                // The minute also has messages from before the refusal, which do not count.
                (false, false) => measured,
            };
            return (rate.min(reached), Knowledge::Measured);
        }
        let trust = accepted / (accepted + 10.0);
        let reached = rate * 0.8 * (1.0 - trust) + measured * trust;
        (rate.min(reached), if accepted >= 30.0 { Knowledge::Measured } else { Knowledge::Rough })
    }

    /// A message was accepted.
    pub fn on_accepted(&mut self, now: Timestamp) {
        let is_gap = self.accepted_at.is_none_or(|at| now.since(at) > Duration::from_secs(10));
        if is_gap {
            self.active_since = Some(now);
        }
        self.accepted_at = Some(now);
        self.last_minute.add(now);
        self.accepted_since_refusal = self.accepted_since_refusal.saturating_add(1);
        self.on_other_reply(now);
    }

    /// A message got a reply other than "too fast".
    pub fn on_other_reply(&mut self, now: Timestamp) {
        if self.pause.is_unrestricted() || self.pause.is_waiting(now) {
            return;
        }
        self.pause.lift();
        let paused = self.paused_since.take().map_or(Duration::ZERO, |since| now.since(since));
        let Some(curve) = &mut self.curve else { return };
        if paused > LONG_PAUSE {
            if curve.knowledge == Knowledge::Search {
                // The receiver counts by the minute: the number of messages that it accepted before is its limit.
                curve.knowledge = Knowledge::Measured;
            }
            curve.restart(SHARE_AFTER_LONG_PAUSE, now);
        } else {
            let share = if self.was_close { SHARE_AFTER_CLOSE_REFUSALS } else { SHARE_AFTER_REFUSAL };
            curve.restart(share, now);
        }
    }

    /// The receiver accepts messages again after it accepted none: start slowly.
    pub fn begin_slowly(&mut self, now: Timestamp) {
        match &mut self.curve {
            Some(curve) => curve.restart(SHARE_AFTER_LONG_PAUSE, now),
            None => self.curve = Some(Curve::new(AFTER_STANDSTILL_PER_MINUTE, Knowledge::Search, now)),
        }
    }

    /// Whether nothing is sent, except perhaps one probe message.
    pub fn is_paused(&self) -> bool {
        !self.pause.is_unrestricted()
    }

    pub fn is_limiting(&self) -> bool {
        self.curve.is_some() || self.is_paused()
    }

    pub fn blocked_until(&self, now: Timestamp) -> Option<Timestamp> {
        let by_pace = || self.next_at.filter(|at| *at > now && self.curve.is_some());
        self.pause.blocked_until(now).or_else(by_pace)
    }

    /// Call right before a message is sent: the next one waits for the interval of the rate. After a pause, that
    /// message is the probe.
    pub fn on_send(&mut self, now: Timestamp) {
        self.pause.on_send(now);
        let Some(rate) = self.per_minute(now) else { return };
        let interval = Duration::from_secs_f64(60.0 / rate);
        // Only a message that had to wait shows that a higher rate is wanted.
        let had_to_wait = self.next_at.is_some_and(|at| now.since(at) <= interval.max(LAG_MAX));
        if let (true, Some(curve), Some(last)) = (had_to_wait, &mut self.curve, self.taken_at) {
            curve.add_used_time(now.since(last).min(interval * 2));
        }
        self.taken_at = Some(now);
        let from = self.next_at.map_or(now, |at| at.max(now.minus(LAG_MAX)));
        self.next_at = Some(from.plus(interval));
    }

    pub fn shift_back(&mut self, by: Duration) {
        self.pause.shift_back(by);
        self.last_minute.shift_back(by);
        let moments = [
            &mut self.paused_since,
            &mut self.next_at,
            &mut self.taken_at,
            &mut self.refused_at,
            &mut self.estimated_at,
            &mut self.active_since,
            &mut self.accepted_at,
        ];
        for at in moments.into_iter().flatten() {
            *at = at.minus(by);
        }
        if let Some(curve) = &mut self.curve {
            curve.since = curve.since.minus(by);
        }
    }
}
