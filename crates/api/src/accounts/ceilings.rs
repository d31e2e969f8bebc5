//! Ceilings of an account in requests and answers.

use crate::documented::ToSchema;
use postroad_app::accounts::AccountCeilingsRequest;
use postroad_openapi_macros::request_fields;
use postroad_store::AccountCeilings;
use serde::Serialize;

use crate::fields::{Fields, Findings};
use crate::server_settings::{RetentionCeilingsOut, read_number_or_none, read_rate, read_retention};

/// Ceilings on what an account may have and send; `"none"` removes a ceiling, omitted ones stay as they are.
#[request_fields]
pub(crate) struct AccountCeilingsIn {
    /// Messages of all servers together in an hour (UTC); messages above the limit are held.
    hourly_limit: Option<crate::server_settings::LimitIn>,
    /// Messages of all servers together in a day (UTC); messages above the limit are held.
    daily_limit: Option<crate::server_settings::LimitIn>,
    /// Messages of all servers together in a calendar month (UTC); messages above the limit are held.
    monthly_limit: Option<crate::server_settings::LimitIn>,
    /// Highest rate of all servers together, such as `10/s`, `100/m` or `1000/h`.
    send_rate: Option<String>,
    /// How many servers the account may have.
    servers: Option<crate::server_settings::LimitIn>,
    /// Domains of the account and of its servers.
    domains: Option<crate::server_settings::LimitIn>,
    /// Webhooks of all servers together.
    webhooks: Option<crate::server_settings::LimitIn>,
    /// People, including invitations.
    users: Option<crate::server_settings::LimitIn>,
    /// Longest retention that a server may set.
    retention: Option<crate::server_settings::RetentionIn>,
}

/// Ceilings on what the account may have and send, set by the operator; null for no ceiling.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountCeilingsOut {
    /// Messages of all servers together in an hour (UTC); messages above the limit are held.
    hourly_limit: Option<u32>,
    /// Messages of all servers together in a day (UTC); messages above the limit are held.
    daily_limit: Option<u32>,
    /// Messages of all servers together in a calendar month (UTC); messages above the limit are held.
    #[schema(example = 100_000)]
    monthly_limit: Option<u32>,
    /// Highest rate of all servers together.
    send_rate: Option<String>,
    servers: Option<u32>,
    /// Domains of the account and of its servers.
    domains: Option<u32>,
    /// Webhooks of all servers together.
    webhooks: Option<u32>,
    /// People, including invitations.
    users: Option<u32>,
    /// Longest retention that a server may set.
    retention: RetentionCeilingsOut,
}

pub(super) fn read(fields: &mut Fields<'_>, findings: &mut Findings) -> AccountCeilingsRequest {
    let mut ceilings = AccountCeilingsRequest {
        hourly_limit: read_number_or_none(fields, "hourly_limit", findings),
        daily_limit: read_number_or_none(fields, "daily_limit", findings),
        monthly_limit: read_number_or_none(fields, "monthly_limit", findings),
        send_rate: read_rate(fields, findings),
        servers: read_number_or_none(fields, "servers", findings),
        domains: read_number_or_none(fields, "domains", findings),
        webhooks: read_number_or_none(fields, "webhooks", findings),
        users: read_number_or_none(fields, "users", findings),
        ..AccountCeilingsRequest::default()
    };
    (ceilings.bodies_days, ceilings.messages_days) = read_retention(fields, findings);
    ceilings
}

impl From<AccountCeilings> for AccountCeilingsOut {
    fn from(ceilings: AccountCeilings) -> Self {
        Self {
            hourly_limit: ceilings.hourly_limit,
            daily_limit: ceilings.daily_limit,
            monthly_limit: ceilings.monthly_limit,
            send_rate: ceilings.send_rate.map(|rate| rate.to_string()),
            servers: ceilings.servers,
            domains: ceilings.domains,
            webhooks: ceilings.webhooks,
            users: ceilings.users,
            retention: RetentionCeilingsOut {
                bodies_days: ceilings.bodies_days,
                messages_days: ceilings.messages_days,
            },
        }
    }
}
