//! What pacing allows, in numbers.

use std::fmt;
use std::sync::Arc;

use postroad_model::Timestamp;

/// What the provider's entry allows from one source address. Pacing never goes above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacingLimits {
    pub connections_max: u32,
    /// Messages. `None` is any number.
    pub per_minute: Option<f64>,
}

/// What is allowed at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// None while suspended; one, with one message in flight, while probing.
    pub connections_max: u32,
    /// Messages. `None` is any number.
    pub per_minute: Option<f64>,
    pub state: PacingState,
    /// When the pace changes by itself: a suspension ends, a quiet minute is over.
    pub until: Option<Timestamp>,
    /// The receiver's words, unless all is normal.
    pub reason: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacingState {
    Normal,
    /// Below the limits, rising with every quiet minute.
    Slowed,
    /// Nothing is sent.
    Suspended,
    /// One message decides.
    Probing,
    /// On the way back from a suspension.
    Recovering,
}

impl PacingState {
    /// As metrics, logs and `postroad queue` write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Slowed => "slowed",
            Self::Suspended => "suspended",
            Self::Probing => "probing",
            Self::Recovering => "recovering",
        }
    }
}

impl fmt::Display for PacingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PacingLimits {
    /// Half of any number is any number. Where the provider names none, a message a second in each connection is what
    /// slowing down starts from.
    fn slowable_per_minute(self) -> f64 {
        self.per_minute.unwrap_or(60.0 * f64::from(self.connections_max))
    }

    pub(super) fn at_most(self, per_minute: f64) -> f64 {
        self.per_minute.map_or(per_minute, |limit| limit.min(per_minute))
    }

    /// Connections and messages a minute; one of each is always allowed, if the limits allow it.
    pub(super) fn share_of(self, share: f64) -> (u32, Option<f64>) {
        let connections = (f64::from(self.connections_max) * share).floor() as u32;
        let per_minute = self.at_most((self.slowable_per_minute() * share).max(1.0));
        (connections.max(1).min(self.connections_max), Some(per_minute))
    }

    /// Where both have come down to one.
    pub(super) fn share_min(self) -> f64 {
        (1.0 / self.slowable_per_minute()).min(1.0 / f64::from(self.connections_max.max(1)))
    }
}
