//! Server modes and credential scopes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Mode of a server. A development server accepts mail like a live one and holds all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerMode {
    Live,
    Development,
}

impl ServerMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Development => "development",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Live, Self::Development].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// Calls that a credential may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All calls of the server's API.
    Full,
    /// Sending only.
    Send,
    /// Look-ups only.
    Read,
    /// SMTP submission from the credential's networks without a secret; no API calls.
    Address,
}

impl Scope {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Send => "send",
            Self::Read => "read",
            Self::Address => "address",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Full, Self::Send, Self::Read, Self::Address].into_iter().find(|scope| scope.as_str() == text)
    }

    /// Whether a key with this scope may make a call that needs the scope `needed`.
    pub fn allows(self, needed: Self) -> bool {
        self == Self::Full || self == needed
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ServerMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
