//! The facts that webhooks, the feed and analytics are told.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! events {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// Kind of an event; the text is the `type` of the webhook body.
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
}

impl EventKind {
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
