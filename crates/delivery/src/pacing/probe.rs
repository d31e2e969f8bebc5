//! A pause that ends with one probe message; the reply to it decides whether sending continues.

use std::time::Duration;

use postroad_model::Timestamp;

/// A probe without a reply after this time decides nothing: another message is sent.
const NO_REPLY_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Default)]
pub(super) struct Probe {
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum State {
    #[default]
    Unrestricted,
    Paused {
        until: Timestamp,
    },
    /// One probe message is being sent.
    BeingSent {
        since: Timestamp,
    },
}

impl Probe {
    pub(super) fn pause_until(&mut self, until: Timestamp) {
        self.state = State::Paused { until };
    }

    /// Ends the pause: sending is not restricted any more.
    pub(super) fn lift(&mut self) {
        self.state = State::Unrestricted;
    }

    /// Whether there is neither a pause nor a probe.
    pub(super) fn is_unrestricted(&self) -> bool {
        self.state == State::Unrestricted
    }

    /// Whether the pause lasts. Meanwhile replies to messages sent before the pause prove nothing.
    pub(super) fn is_waiting(&self, now: Timestamp) -> bool {
        matches!(self.state, State::Paused { until } if until > now)
    }

    pub(super) fn blocked_until(&self, now: Timestamp) -> Option<Timestamp> {
        let until = match self.state {
            State::Unrestricted => return None,
            State::Paused { until } => until,
            State::BeingSent { since } => since.plus(NO_REPLY_MAX),
        };
        (until > now).then_some(until)
    }

    /// Call right before a message is sent. After a pause, that message is the probe.
    pub(super) fn on_send(&mut self, now: Timestamp) {
        if self.state != State::Unrestricted {
            self.state = State::BeingSent { since: now };
        }
    }

    pub(super) fn shift_back(&mut self, by: Duration) {
        match &mut self.state {
            State::Unrestricted => {}
            State::Paused { until: at } | State::BeingSent { since: at } => *at = at.minus(by),
        }
    }
}
