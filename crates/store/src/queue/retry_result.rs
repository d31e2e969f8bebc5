//! Result of a retry or a release.

use postroad_model::{LimitPeriod, SuppressionReason, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryResult {
    /// The message was queued, and is due now.
    Now,
    /// The message was held, and is now queued.
    Released,
    /// Nothing was changed: the recipient is suppressed, so the message would be held again.
    Suppressed { reason: SuppressionReason, since: Timestamp },
    /// Nothing was changed: the message's server has reached this hourly limit.
    OverHourlyLimit { limit: u32 },
    /// Nothing was changed: the server's account has reached this limit.
    OverAccountLimit { limit: u32, period: LimitPeriod },
    /// Nothing was changed: the operator or the account made the server a development server, which does not send.
    DevelopmentOnly,
    /// The message is being sent right now.
    TooLate,
    /// The message is neither queued nor held, or is unknown.
    NotWaiting,
}
