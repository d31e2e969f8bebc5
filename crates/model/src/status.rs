//! States of a message and the transitions between them, as a table that a test walks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// State of a message. Delivery records use the same names, except `Pending` and `Scheduled`, for their outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    Pending,
    Scheduled,
    Held,
    SoftFail,
    Sent,
    HardFail,
    Bounced,
    HoldCancelled,
    Cancelled,
}

impl Status {
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Scheduled,
        Self::Held,
        Self::SoftFail,
        Self::Sent,
        Self::HardFail,
        Self::Bounced,
        Self::HoldCancelled,
        Self::Cancelled,
    ];

    /// States that can directly follow this one. Two ways back from `Pending` to `Scheduled` are not listed: a message
    /// that is already due is rescheduled, or the clock is set back to a time before the message's send time.
    pub const fn next(self) -> &'static [Self] {
        use Status::{Bounced, Cancelled, HardFail, Held, HoldCancelled, Pending, Scheduled, Sent, SoftFail};
        match self {
            Scheduled => &[Pending, SoftFail, Sent, HardFail, Held, Cancelled],
            Pending | SoftFail => &[Sent, SoftFail, HardFail, Held, Cancelled],
            Held => &[Pending, Scheduled, HoldCancelled],
            Sent => &[Bounced],
            HardFail | Bounced | HoldCancelled | Cancelled => &[],
        }
    }

    pub fn can_become(self, next: Self) -> bool {
        self.next().contains(&next)
    }

    /// Whether a message in this state has a queue entry.
    pub const fn is_queued(self) -> bool {
        matches!(self, Self::Pending | Self::Scheduled | Self::SoftFail)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Scheduled => "Scheduled",
            Self::Held => "Held",
            Self::SoftFail => "SoftFail",
            Self::Sent => "Sent",
            Self::HardFail => "HardFail",
            Self::Bounced => "Bounced",
            Self::HoldCancelled => "HoldCancelled",
            Self::Cancelled => "Cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Outgoing mail, or incoming bounces and reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Outgoing,
    Incoming,
}

impl Direction {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outgoing => "outgoing",
            Self::Incoming => "incoming",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Outgoing, Self::Incoming].into_iter().find(|direction| direction.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_reachable_and_final_states_are_not_queued() {
        let mut reached = vec![Status::Pending, Status::Scheduled];
        let mut index = 0;
        while index < reached.len() {
            for next in reached[index].next() {
                if !reached.contains(next) {
                    reached.push(*next);
                }
            }
            index += 1;
        }
        assert_eq!(reached.len(), Status::ALL.len());
        for end in Status::ALL.into_iter().filter(|status| status.next().is_empty()) {
            assert!(!end.is_queued(), "{end} ends a message but stays queued");
        }
    }

    #[test]
    fn status_names_round_trip() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
    }
}
