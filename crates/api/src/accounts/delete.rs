//! accounts/delete: delete an account.

use postroad_model::AccountId;

use super::account_out::AccountOut;
use super::get::read;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Delete an account
///
/// Its keys and its servers' keys stop working at once. Until `delete_at`, seven days later, accounts/restore can
/// restore it.
#[crate::documented::path(
    post,
    path = "/api/v1/accounts/delete",
    tag = "accounts",
    operation_id = "deleteAccount",
    request_body = super::get::AccountIdIn,
    responses((status = 200, body = crate::documented::Answer<AccountOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.delete_account_as(&call.caller, AccountId(id)).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountOut::from), warnings)
}
