//! Reasons for suppressing an address.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why an address is suppressed. `as_str` is the field `reason` of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuppressionReason {
    /// The address is dead, according to a mail server.
    HardBounce,
    /// The recipient reported a message as spam.
    Complaint,
    /// Somebody added the address. The default when an address is added.
    Manual,
    /// The recipient unsubscribed.
    Unsubscribe,
    /// The address kept failing temporarily. Only people and API calls give this reason, never Postroad itself.
    SoftBounce,
}

impl SuppressionReason {
    pub const ALL: [Self; 5] =
        [Self::HardBounce, Self::Complaint, Self::Manual, Self::Unsubscribe, Self::SoftBounce];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HardBounce => "hard_bounce",
            Self::Complaint => "complaint",
            Self::Manual => "manual",
            Self::Unsubscribe => "unsubscribe",
            Self::SoftBounce => "soft_bounce",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

impl fmt::Display for SuppressionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_names_round_trip() {
        for reason in SuppressionReason::ALL {
            assert_eq!(SuppressionReason::parse(reason.as_str()), Some(reason));
        }
        assert_eq!(SuppressionReason::parse("bounce"), None);
    }
}
