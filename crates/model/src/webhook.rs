//! Format in which a webhook receives events.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WebhookFormat {
    /// The format of Standard Webhooks.
    Standard,
    /// Postal's format, for receivers written for it.
    Postal,
}

impl WebhookFormat {
    pub const ALL: [Self; 2] = [Self::Standard, Self::Postal];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Postal => "postal",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == text)
    }
}

impl fmt::Display for WebhookFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
