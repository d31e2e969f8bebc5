//! account/usage: usage of the account.

use crate::documented::ToSchema;
use postroad_app::accounts::AccountUsage;
use serde::Serialize;

use super::get::read;
use crate::accounts::ceilings::AccountCeilingsOut;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageOut {
    servers: usize,
    /// Domains of the account and of its servers.
    domains: usize,
    /// Webhooks of all servers.
    webhooks: usize,
    /// People, including invitations.
    users: usize,
    messages: MessagesUsedOut,
    ceilings: AccountCeilingsOut,
}

/// Messages that count against the account's limits (UTC); null where there is no limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessagesUsedOut {
    hour: Option<i64>,
    day: Option<i64>,
    month: Option<i64>,
}

impl From<AccountUsage> for UsageOut {
    fn from(usage: AccountUsage) -> Self {
        let [hour, day, month] = usage.messages;
        Self {
            servers: usage.servers,
            domains: usage.domains,
            webhooks: usage.webhooks,
            users: usage.users,
            messages: MessagesUsedOut { hour, day, month },
            ceilings: usage.ceilings.into(),
        }
    }
}

/// Get the usage of the account
///
/// Servers (including deleted ones that can be restored), domains, webhooks, people and messages, with the ceilings of
/// the account.
#[crate::documented::path(
    post,
    path = "/api/v1/account/usage",
    tag = "account",
    operation_id = "getAccountUsage",
    request_body = super::get::OwnAccountIn,
    responses((status = 200, body = crate::documented::Answer<UsageOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<UsageOut>, Failure> {
    let mut findings = Findings::default();
    let account = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = call.app.account_usage(&call.caller, account).await.map_err(Failure::from);
    Success::with_warnings(found.map(UsageOut::from), warnings)
}
