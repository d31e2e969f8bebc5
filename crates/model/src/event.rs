//! Event types of webhooks, the feed and analytics. The macro `events!` declares all of them.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! events {
    ($($variant:ident = $name:literal, $severity:ident $(, postal $postal:literal)?;)+) => {
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

            /// Name in Postal's webhook format; `None` if that format cannot express the event.
            pub const fn postal_name(self) -> Option<&'static str> {
                match self {
                    $($(Self::$variant => Some($postal),)?)+
                    _ => None,
                }
            }
        }
    };
}

// Type, severity, and the name in Postal's webhook format if it has one. The order is stored: new types go to the end.
events! {
    Accepted = "message.accepted", Info;
    Delivered = "message.delivered", Success, postal "MessageSent";
    Delayed = "message.delayed", Warning, postal "MessageDelayed";
    Bounced = "message.bounced", Error, postal "MessageDeliveryFailed";
    Failed = "message.failed", Error, postal "MessageDeliveryFailed";
    Held = "message.held", Warning, postal "MessageHeld";
    Released = "message.released", Info;
    Cancelled = "message.cancelled", Notice;
    Complained = "message.complained", Error;
    Opened = "message.opened", Info, postal "MessageLoaded";
    Clicked = "message.clicked", Info, postal "MessageLinkClicked";
    Unsubscribed = "message.unsubscribed", Notice;
    DomainVerified = "domain.verified", Success;
    DomainFailing = "domain.failing", Error, postal "DomainDNSError";
    SendLimitApproaching = "send_limit.approaching", Warning, postal "SendLimitApproaching";
    SendLimitExceeded = "send_limit.exceeded", Error, postal "SendLimitExceeded";
    WebhookDisabled = "webhook.disabled", Error;
    IpWarmupPaused = "ip.warmup_paused", Warning;
    CeilingApproaching = "ceiling.approaching", Warning;
    CeilingReached = "ceiling.reached", Error;
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
