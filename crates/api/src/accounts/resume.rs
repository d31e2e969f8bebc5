//! accounts/resume: lift the suspension of an account.

use postroad_model::AccountId;

use super::account_out::AccountOut;
use super::get::read;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::Findings;

/// Resume an account
///
/// Lifts a suspension.
#[crate::documented::path(
    post,
    path = "/api/v1/accounts/resume",
    tag = "accounts",
    operation_id = "resumeAccount",
    request_body = super::get::AccountIdIn,
    responses((status = 200, body = crate::documented::Answer<AccountOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done =
        call.app.set_account_suspension_as(&call.caller, AccountId(id), None).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountOut::from), warnings)
}
