//! Result of a retry or a release.

use postroad_model::{LimitPeriod, SuppressionReason, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retried {
    /// It was queued and is due now.
    Now,
    /// It was held and is queued again.
    Released,
    /// Nothing was changed: its recipient is suppressed, so it would be held again.
    Suppressed { reason: SuppressionReason, since: Timestamp },
    /// Nothing was changed: its server has reached this hourly limit.
    OverHourlyLimit { limit: u32 },
    /// Nothing was changed: its account has reached this limit.
    OverAccountLimit { limit: u32, period: LimitPeriod },
    /// Nothing was changed: the operator or the account made its server a development server, which does not send.
    DevelopmentOnly,
    /// It is being sent right now.
    TooLate,
    /// It is neither queued nor held, or unknown.
    NotWaiting,
}
