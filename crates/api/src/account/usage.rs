//! account/usage: how much the account has.

use postroad_app::accounts::AccountUsage;
use serde::Serialize;
use utoipa::ToSchema;

use super::get::{OwnAccountIn, read};
use crate::endpoint::AccountCall;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::Findings;

/// Counted up to 10,000.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageOut {
    servers: usize,
    /// Of the account and of its servers.
    domains: usize,
}

/// Count what the account has
///
/// Servers, those that can be restored included, and domains.
#[utoipa::path(
    post,
    path = "/api/v1/account/usage",
    tag = "account",
    operation_id = "getAccountUsage",
    request_body = OwnAccountIn,
    responses((status = 200, body = Answer<UsageOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<UsageOut>, Failure> {
    let mut findings = Findings::default();
    let account = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let found = call.app.account_usage(&call.caller, account).await.map_err(Failure::from);
    let shown = |usage: AccountUsage| UsageOut { servers: usage.servers, domains: usage.domains };
    Success::with_warnings(found.map(shown), warnings)
}
