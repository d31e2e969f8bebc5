//! Event types of webhooks, the feed and analytics.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! events {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// Event type; the text is the `type` of the webhook body.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum EventKind {
            $(#[serde(rename = $name)] $variant),+
        }

        impl EventKind {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

events! {
    Accepted = "message.accepted",
    Delivered = "message.delivered",
    Delayed = "message.delayed",
    Bounced = "message.bounced",
    Failed = "message.failed",
    Held = "message.held",
    Released = "message.released",
    Cancelled = "message.cancelled",
    Complained = "message.complained",
    Opened = "message.opened",
    Clicked = "message.clicked",
    Unsubscribed = "message.unsubscribed",
    DomainVerified = "domain.verified",
    DomainFailing = "domain.failing",
    SendLimitApproaching = "send_limit.approaching",
    SendLimitExceeded = "send_limit.exceeded",
    WebhookDisabled = "webhook.disabled",
    IpWarmupPaused = "ip.warmup_paused",
    CeilingApproaching = "ceiling.approaching",
    CeilingReached = "ceiling.reached",
}

impl EventKind {
    /// Bit of this type in an `EventSet`. Stored in the database: add new types only at the end.
    pub const fn bit(self) -> i64 {
        1 << self as u32
    }

    /// Whether the event concerns a message; the others concern a server.
    pub fn is_about_message(self) -> bool {
        self.as_str().starts_with("message.")
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

/// Set of event types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSet(i64);

impl EventSet {
    /// Includes types of later versions.
    pub const ALL: Self = Self(i64::MAX);

    pub const fn bits(self) -> i64 {
        self.0
    }

    pub const fn from_bits(bits: i64) -> Self {
        Self(bits)
    }

    pub const fn contains(self, kind: EventKind) -> bool {
        self.0 & kind.bit() != 0
    }
}

impl FromIterator<EventKind> for EventSet {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | kind.bit()))
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
