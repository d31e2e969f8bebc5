//! Event types of webhooks, the feed and analytics. The macro `events!` declares all of them.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! events {
    ($($variant:ident = $name:literal, $severity:ident, $postal:expr;)+) => {
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

            pub const fn severity(self) -> EventSeverity {
                match self { $(Self::$variant => EventSeverity::$severity),+ }
            }

            /// Name in Postal's webhook format; `None` if that format cannot express the event. For a message that was
            /// returned later, the crate `events` uses `MessageBounced` instead.
            pub const fn postal_name(self) -> Option<&'static str> {
                match self { $(Self::$variant => $postal),+ }
            }
        }
    };
}

// Type, severity, name in Postal's webhook format. The order is stored: new types go to the end.
events! {
    Accepted = "message.accepted", Info, None;
    Delivered = "message.delivered", Success, Some("MessageSent");
    Delayed = "message.delayed", Warning, Some("MessageDelayed");
    Bounced = "message.bounced", Error, Some("MessageDeliveryFailed");
    Failed = "message.failed", Error, Some("MessageDeliveryFailed");
    Held = "message.held", Warning, Some("MessageHeld");
    Released = "message.released", Info, None;
    Cancelled = "message.cancelled", Notice, None;
    Complained = "message.complained", Error, None;
    Opened = "message.opened", Info, Some("MessageLoaded");
    Clicked = "message.clicked", Info, Some("MessageLinkClicked");
    Unsubscribed = "message.unsubscribed", Notice, None;
    DomainVerified = "domain.verified", Success, None;
    DomainFailing = "domain.failing", Error, Some("DomainDNSError");
    SendLimitApproaching = "send_limit.approaching", Warning, Some("SendLimitApproaching");
    SendLimitExceeded = "send_limit.exceeded", Error, Some("SendLimitExceeded");
    WebhookDisabled = "webhook.disabled", Error, None;
    IpWarmupPaused = "ip.warmup_paused", Warning, None;
    CeilingApproaching = "ceiling.approaching", Warning, None;
    CeilingReached = "ceiling.reached", Error, None;
}

/// How much attention an event needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventSeverity {
    Info,
    Success,
    /// Normal, but somebody ended something: a message was cancelled, a recipient unsubscribed.
    Notice,
    Warning,
    Error,
}

impl EventKind {
    /// Bit of this type in an `EventSet`. Stored in the database: add new types only at the end.
    pub const fn bit(self) -> i64 {
        1 << self as u32
    }

    /// Whether the event concerns a message; all other events concern a server.
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
    /// All types, including those that later versions of Postroad add.
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

/// Events that Postal's webhook format can express; `"all"` selects them in that format.
pub fn postal_events() -> EventSet {
    EventKind::ALL.iter().copied().filter(|kind| kind.postal_name().is_some()).collect()
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
