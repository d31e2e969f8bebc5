//! Estimate of the concurrent connections that a receiver accepts from one source address. The reply "too many
//! connections" lowers the estimate to the number of open connections; from time to time one more is tried.

use std::time::Duration;

use postroad_model::Timestamp;

use super::probe::Probe;
use super::reason::Reason;

/// Pause before one more connection is tried. Receivers count a connection for a moment after it was closed, so the
/// first "too many" may be about a closed one.
const TRY_AFTER: Duration = Duration::from_secs(10);
const TRY_AFTER_MAX: Duration = Duration::from_mins(10);
/// Pause when no connection is open and the receiver accepts none.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_secs(45);

#[derive(Debug, Clone, Default)]
pub struct ConnectionEstimate {
    /// `None` if nothing was ever refused.
    limit: Option<u32>,
    /// The last reply "too many connections"; empty if connections failed without a reply, or if the estimate was
    /// restored.
    reply: Reason,
    /// When one connection more than `limit` may be tried.
    try_at: Option<Timestamp>,
    /// Pause before that trial; it grows while trials are refused.
    try_after: Duration,
    /// Pause while even the first connection is refused, for example because other clients use up the receiver's limit.
    pause: Probe,
    pause_last: Duration,
}

impl ConnectionEstimate {
    /// Restores an estimate of another process, or an older one of this process.
    pub fn restored(limit: u32, now: Timestamp) -> Self {
        let limit = Some(limit.max(1));
        Self { limit, try_at: Some(now.plus(TRY_AFTER)), try_after: TRY_AFTER, ..Self::default() }
    }

    /// Connections allowed now; `None` for any number.
    pub fn limit(&self, now: Timestamp) -> Option<u32> {
        let may_try = self.try_at.is_some_and(|at| at <= now);
        Some(self.limit? + u32::from(may_try))
    }

    /// The known limit, if any.
    pub fn known(&self) -> Option<u32> {
        self.limit
    }

    /// The last reply "too many connections"; empty if there was none.
    pub fn reply(&self) -> &Reason {
        &self.reply
    }

    /// The receiver replied "too many connections" while `open` connections were open. `reply` is empty if the
    /// connection failed without a reply.
    pub fn on_refused(&mut self, open: u32, reply: &Reason, now: Timestamp) {
        self.reply = reply.clone();
        if open == 0 {
            if self.pause.is_waiting(now) {
                return;
            }
            self.pause_last = (self.pause_last * 2).clamp(PAUSE, PAUSE_MAX);
            self.pause.pause_until(now.plus(self.pause_last));
            self.limit = Some(1);
            self.try_after = TRY_AFTER;
            self.try_at = Some(now.plus(TRY_AFTER));
            return;
        }
        let is_trial_refused =
            self.limit.is_some_and(|limit| open >= limit) && self.try_at.is_some_and(|at| at <= now);
        if is_trial_refused {
            self.try_after = (self.try_after * 2).clamp(TRY_AFTER, TRY_AFTER_MAX);
        } else if self.limit.is_none_or(|limit| open < limit) {
            self.try_after = TRY_AFTER;
        }
        self.limit = Some(open);
        self.try_at = Some(now.plus(self.try_after));
    }

    /// One more connection was accepted; now `open` connections are open.
    pub fn on_accepted(&mut self, open: u32, now: Timestamp) {
        self.pause.lift();
        self.pause_last = Duration::ZERO;
        if self.limit.is_some_and(|limit| open > limit) {
            self.limit = Some(open);
            self.try_after = TRY_AFTER;
            self.try_at = Some(now.plus(TRY_AFTER));
        }
    }

    pub fn blocked_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.pause.blocked_until(now)
    }

    /// Call right before a message is sent. After a pause, that message is the probe.
    pub fn on_send(&mut self, now: Timestamp) {
        self.pause.on_send(now);
    }

    /// The clock went back by this time: moves recorded times back too, so that pauses do not last longer.
    pub fn shift_back(&mut self, by: Duration) {
        self.try_at = self.try_at.map(|at| at.minus(by));
        self.pause.shift_back(by);
    }
}
