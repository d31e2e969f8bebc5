//! A path: one source address to one site, with one required security. A path counts its connections, and has the
//! retries that keep its address, and the back-off when nothing answers.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::{GateScope, ServerId, SourceId, Timestamp};

use super::attempts::Attempt;
use super::site_queue::SiteQueue;
use super::wait_cause::SeenBlock;

/// A growing pause after connections that failed.
#[derive(Debug, Default)]
pub(super) struct BackOff {
    failures: usize,
    /// Time of the first failure in a row.
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    /// Another address of the pool reached the site after the first failure.
    pub(super) only_this_address_fails: bool,
    pub(super) reason: String,
}

/// Upper limit of a pause, whatever the retry schedule: a host that returns is found within this time.
const PAUSE_MAX: Duration = Duration::from_mins(10);

/// If the host was reached within this time before the failures, it is tried every `PROBE_PAUSE`, for `PROBED_FOR`.
const REACHED_LATELY: Duration = Duration::from_hours(1);
const PROBE_PAUSE: Duration = Duration::from_secs(45);
const PROBED_FOR: Duration = Duration::from_mins(30);

impl BackOff {
    /// Counts a failure and begins a pause. `steps` are the pauses of the retry schedule; `reached_at` is when a
    /// connection last opened. Returns whether the site is probed: one connection at a time tries soon.
    pub(super) fn on_failure(
        &mut self,
        now: Timestamp,
        reached_at: Option<Timestamp>,
        steps: &[Duration],
        reason: String,
    ) -> bool {
        let since = *self.since.get_or_insert(now);
        let was_reached = reached_at.is_some_and(|at| since.since(at) <= REACHED_LATELY);
        let is_probed = was_reached && now.since(since) < PROBED_FOR;
        let step = steps.get(self.failures.min(steps.len().saturating_sub(1)));
        let pause = step.copied().unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
        let pause = if is_probed { pause.min(PROBE_PAUSE) } else { pause };
        self.failures += 1;
        self.until = Some(now.plus(pause));
        self.reason = reason;
        is_probed
    }

    /// A pause that does not count as a failure.
    pub(super) fn pause(&mut self, now: Timestamp, pause: Duration, reason: String) {
        if self.blocked_until(now).is_none() {
            self.until = Some(now.plus(pause));
            self.reason = reason;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Time of the first failure in a row.
    pub(super) fn since(&self) -> Option<Timestamp> {
        self.since
    }

    pub(super) fn shift_back(&mut self, by: Duration) {
        self.until = self.until.map(|until| until.minus(by));
        self.since = self.since.map(|since| since.minus(by));
    }

    pub(super) fn blocked_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.until.filter(|until| *until > now)
    }
}

/// A path counts as stuck after this time: its connections are busy and asked for no further message, or it has been
/// waiting for its first connection.
const STUCK_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Path {
    pub(super) source: SourceId,
    pub(super) queue: usize,
    /// Index of the state that this path shares with paths to the same site under other required security.
    pub(super) source_site: usize,
    /// `Route::secured_site`.
    pub(super) secured_site: Arc<str>,
    pub(super) scopes: Vec<GateScope>,
    /// Running connection tasks. `idle` of these wait for work, and `notified` of the idle ones were woken for work.
    pub(super) connections: u32,
    pub(super) idle: u32,
    pub(super) notified: u32,
    /// Started connection tasks that have not asked for work yet.
    pub(super) starting: u32,
    /// Attempts of its connection tasks.
    pub(super) attempts: Vec<Attempt>,
    /// The server whose message the path's connections carried last.
    pub(super) carried_server: Option<ServerId>,
    /// Slow start: the number of connections allowed so far; it grows with each accepted message.
    pub(super) ramp: u32,
    pub(super) back_off: BackOff,
    /// When a connection last opened.
    pub(super) reached_at: Option<Timestamp>,
    /// Messages taken divided by the source's weight: paths of one pool keep in step.
    pub(super) progress: f64,
    /// When a message was last taken.
    pub(super) taken_at: Option<Timestamp>,
    /// When one of its connections last asked for a message.
    pub(super) last_request_at: Option<Timestamp>,
    /// Time since which the path has had no connection for lack of room.
    pub(super) lacks_room_since: Option<Timestamp>,
    /// Retries that keep this path's address. They have had their turn in the queue, and were counted in their servers'
    /// rates.
    pub(super) sticky_retries: SiteQueue,
    /// Last obstacle that blocked the entries of `sticky_retries`.
    pub(super) last_block: Option<SeenBlock>,
    /// Whether the last message taken was an entry of `sticky_retries`.
    pub(super) took_sticky: bool,
    /// Whether the source was removed from its pool.
    pub(super) retired: bool,
}

impl Path {
    /// Number of connection tasks that will ask for work in a moment.
    pub(super) fn expected_requests(&self) -> u32 {
        self.notified + self.starting
    }

    /// Number of `expected_requests` that will take messages of the queue, not of `sticky_retries`.
    pub(super) fn expected_queue_requests(&self) -> u32 {
        self.expected_requests().saturating_sub(self.sticky_retries.count() as u32)
    }

    /// When the path counts as stuck, so that other paths of the pool do not wait for it. Either its connections are
    /// busy and have asked for no further message. Or it gets no connection, and its address has taken no message at
    /// the provider since `taken_at`.
    pub(super) fn stuck_at(&self, taken_at: Option<Timestamp>) -> Option<Timestamp> {
        let last_request_at = self.last_request_at.filter(|_| self.is_busy());
        let since = last_request_at
            .or_else(|| self.lacks_room_since.map(|since| taken_at.map_or(since, |at| at.max(since))))?;
        Some(since.plus(STUCK_AFTER))
    }

    /// Whether the path's connections have messages, and none has asked for another for this long.
    pub(super) fn is_busy_without_request_for(&self, duration: Duration, now: Timestamp) -> bool {
        self.is_busy() && self.last_request_at.is_some_and(|at| now.since(at) > duration)
    }

    /// Whether a connection has a message: idle tasks have none, and tasks that were just started have none yet.
    fn is_busy(&self) -> bool {
        self.connections > self.idle + self.starting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_along_the_schedule_up_to_ten_minutes() {
        let steps = [60, 300, 1_200].map(Duration::from_secs);
        let mut back_off = BackOff::default();
        let now = Timestamp::from_micros(0);
        let mut pause = || {
            back_off.on_failure(now, None, &steps, "refused".into());
            back_off.blocked_until(now).unwrap().since(now).as_secs()
        };
        assert_eq!([pause(), pause(), pause(), pause()], [60, 300, 600, 600]);
        back_off.clear();
        assert!(back_off.blocked_until(now).is_none());
    }

    #[test]
    fn host_that_was_reached_lately_is_tried_every_45_seconds_for_half_an_hour() {
        let steps = [60, 300, 1_200].map(Duration::from_secs);
        let reached_at = Timestamp::from_micros(0);
        let (mut now, mut back_off) = (reached_at.plus(Duration::from_mins(50)), BackOff::default());
        let first = now;
        while now.since(first) < Duration::from_mins(30) {
            assert!(back_off.on_failure(now, Some(reached_at), &steps, "refused".into()));
            let until = back_off.blocked_until(now).unwrap();
            assert_eq!(until.since(now), Duration::from_secs(45));
            now = until;
        }
        assert!(!back_off.on_failure(now, Some(reached_at), &steps, "refused".into()));
        assert_eq!(back_off.blocked_until(now), Some(now.plus(Duration::from_mins(10))));
    }
}
