//! accounts/restore: take a deleted account back.

use postroad_model::AccountId;

use super::account_out::AccountOut;
use super::get::{AccountIdIn, read};
use crate::endpoint::AccountCall;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::Findings;

/// Restore an account
///
/// An account that was deleted less than seven days ago.
#[utoipa::path(
    post,
    path = "/api/v1/accounts/restore",
    tag = "accounts",
    operation_id = "restoreAccount",
    request_body = AccountIdIn,
    responses((status = 200, body = Answer<AccountOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let done = call.app.restore_customer(&call.caller, AccountId(id)).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountOut::from), warnings)
}
