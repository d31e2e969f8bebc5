//! Reasons for holding a message.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// The recipient is suppressed.
    Suppressed,
    /// The server has reached its hourly limit.
    HourlyLimit,
    /// The account has reached its hourly, daily or monthly limit of messages.
    AccountLimit,
    /// The server is in development mode.
    Development,
    /// The credential holds everything sent with it.
    Credential,
}

impl HoldReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Suppressed => "suppressed",
            Self::HourlyLimit => "hourly_limit",
            Self::AccountLimit => "account_limit",
            Self::Development => "development",
            Self::Credential => "credential",
        }
    }
}

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
