//! Message limits by period, and their usage.

use std::time::Duration;

use postroad_model::{AccountId, LimitPeriod, Timestamp};

/// Message limits of an account for an hour, a day and a month (UTC); messages beyond them are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountLimits {
    pub account_id: AccountId,
    /// In the order of `LimitPeriod::ALL`; `None` for no limit.
    pub limits: [Option<u32>; 3],
}

/// Owner of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitOwner {
    Server,
    Account,
}

/// A limit, and its usage after a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitUse {
    pub owner: LimitOwner,
    pub period: LimitPeriod,
    pub limit: u32,
    pub used: i64,
    /// Time until the next period, in which the count starts at zero.
    pub resets_in: Duration,
}

/// One hour, day or month, with the limit that applies to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) period: LimitPeriod,
    /// Number of the period since 1970.
    pub(crate) number: i64,
    pub(crate) limit: u32,
}

impl LimitUse {
    pub(crate) fn new(owner: LimitOwner, window: Window, used: i64, now: Timestamp) -> Self {
        let Window { period, number, limit } = window;
        Self { owner, period, limit, used, resets_in: period.start(number + 1).since(now) }
    }

    pub fn remaining(&self) -> u32 {
        u32::try_from((i64::from(self.limit) - self.used).max(0)).unwrap_or(u32::MAX)
    }

    /// Whether nine tenths of the limit are used.
    pub fn is_nearly_full(&self) -> bool {
        self.used * 10 >= i64::from(self.limit) * 9
    }
}

impl AccountLimits {
    /// `None` for an account without limits.
    pub(crate) fn of(account_id: AccountId, limits: [Option<u32>; 3]) -> Option<Self> {
        limits.iter().any(Option::is_some).then_some(Self { account_id, limits })
    }

    /// The windows that contain `at`, in the order in which their rows are locked.
    pub(crate) fn windows(&self, at: Timestamp) -> impl Iterator<Item = Window> {
        let limits = LimitPeriod::ALL.into_iter().zip(self.limits);
        limits.filter_map(move |(period, limit)| {
            Some(Window { period, number: period.number_at(at), limit: limit? })
        })
    }
}

impl Window {
    /// Value of the column `account_periods.period`.
    pub(crate) fn period_code(&self) -> i64 {
        self.period as i64 + 1
    }
}
