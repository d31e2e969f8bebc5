//! Ceilings of an account, set by the operator.

use postroad_model::{AccountId, Change, SendRate};
use serde::Serialize;

use super::ceiling_values::{Ceilings, read_rate, value_after};
use crate::accept::AccountLimits;
use crate::error::StoreError;
use crate::sql::{Row, Value};

/// Ceilings of an account; `None` means no ceiling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AccountCeilings {
    /// Messages of all servers together in an hour, a day and a month (UTC).
    pub hourly_limit: Option<u32>,
    pub daily_limit: Option<u32>,
    pub monthly_limit: Option<u32>,
    /// Send rate that all servers share; also the highest rate that a single server may set.
    pub send_rate: Option<SendRate>,
    pub servers: Option<u32>,
    pub domains: Option<u32>,
    pub webhooks: Option<u32>,
    pub users: Option<u32>,
    /// Longest retention of bodies that a server may set, in days.
    pub bodies_days: Option<u32>,
    /// Longest retention of messages that a server may set, in days.
    pub messages_days: Option<u32>,
}

/// Changes of ceilings; `Change::Keep` leaves a ceiling as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountCeilingsChange {
    pub hourly_limit: Change<u32>,
    pub daily_limit: Change<u32>,
    pub monthly_limit: Change<u32>,
    pub send_rate: Change<SendRate>,
    pub servers: Change<u32>,
    pub domains: Change<u32>,
    pub webhooks: Change<u32>,
    pub users: Change<u32>,
    pub bodies_days: Change<u32>,
    pub messages_days: Change<u32>,
}

/// The columns of ceilings in `accounts`, each after `$prefix`, in the order of `read`.
macro_rules! columns {
    ($prefix:literal) => {
        concat!(
            $prefix,
            "hourly_limit, ",
            $prefix,
            "daily_limit, ",
            $prefix,
            "monthly_limit, ",
            $prefix,
            "send_rate, ",
            $prefix,
            "servers_max, ",
            $prefix,
            "domains_max, ",
            $prefix,
            "webhooks_max, ",
            $prefix,
            "users_max, ",
            $prefix,
            "retention_bodies, ",
            $prefix,
            "retention_messages"
        )
    };
}
pub(super) use columns;

impl AccountCeilings {
    /// Message limits for all servers of the account together; `None` if there are no such limits.
    pub fn limits(&self, account_id: AccountId) -> Option<AccountLimits> {
        AccountLimits::of(account_id, [self.hourly_limit, self.daily_limit, self.monthly_limit])
    }

    /// The ceilings that apply to each server of the account.
    pub(super) fn for_server(&self) -> Ceilings {
        Ceilings {
            mode: None,
            send_rate: self.send_rate,
            hourly_limit: self.hourly_limit,
            bodies_days: self.bodies_days,
            messages_days: self.messages_days,
        }
    }

    /// The values in the order of `columns`.
    pub(super) fn values(&self) -> [Value; 10] {
        let number = |limit: Option<u32>| limit.map(i64::from).into();
        [
            number(self.hourly_limit),
            number(self.daily_limit),
            number(self.monthly_limit),
            self.send_rate.map(|rate| rate.to_string()).into(),
            number(self.servers),
            number(self.domains),
            number(self.webhooks),
            number(self.users),
            number(self.bodies_days),
            number(self.messages_days),
        ]
    }
}

impl AccountCeilingsChange {
    /// The ceilings after the change.
    pub(super) fn after(&self, current: &AccountCeilings) -> AccountCeilings {
        AccountCeilings {
            hourly_limit: value_after(self.hourly_limit, current.hourly_limit),
            daily_limit: value_after(self.daily_limit, current.daily_limit),
            monthly_limit: value_after(self.monthly_limit, current.monthly_limit),
            send_rate: value_after(self.send_rate, current.send_rate),
            servers: value_after(self.servers, current.servers),
            domains: value_after(self.domains, current.domains),
            webhooks: value_after(self.webhooks, current.webhooks),
            users: value_after(self.users, current.users),
            bodies_days: value_after(self.bodies_days, current.bodies_days),
            messages_days: value_after(self.messages_days, current.messages_days),
        }
    }
}

/// Reads the ten columns from `at` on.
pub(super) fn read(row: &Row, at: usize) -> Result<AccountCeilings, StoreError> {
    let number =
        |at| Ok::<_, StoreError>(row.int_opt(at)?.map(|number| u32::try_from(number).unwrap_or(u32::MAX)));
    Ok(AccountCeilings {
        hourly_limit: number(at)?,
        daily_limit: number(at + 1)?,
        monthly_limit: number(at + 2)?,
        send_rate: read_rate(row, at + 3)?,
        servers: number(at + 4)?,
        domains: number(at + 5)?,
        webhooks: number(at + 6)?,
        users: number(at + 7)?,
        bodies_days: number(at + 8)?,
        messages_days: number(at + 9)?,
    })
}
