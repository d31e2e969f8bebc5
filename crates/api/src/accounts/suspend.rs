//! accounts/suspend: suspend an account.

use postroad_model::AccountId;
use postroad_openapi_macros::request_fields;

use super::account_out::AccountOut;
use crate::account_params::{read_required_id, read_required_text};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The account, and the reason.
#[request_fields]
#[schema(example = json!({"id": 12, "reason": "unpaid"}))]
pub(crate) struct SuspendAccountIn {
    /// Id of the account.
    id: i64,
    /// Up to 500 characters; stored with the suspension.
    reason: String,
}

/// Suspend one account
///
/// Its keys are refused. Messages that were accepted earlier wait until the account is resumed.
#[crate::documented::path(
    post,
    path = "/api/v1/accounts/suspend",
    tag = "accounts",
    operation_id = "suspendAccount",
    request_body = SuspendAccountIn,
    responses((status = 200, body = crate::documented::Answer<AccountOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountOut>, Failure> {
    let mut findings = Findings::default();
    let (id, reason) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call
        .app
        .set_account_suspension_as(&call.caller, AccountId(id), Some(reason))
        .await
        .map_err(Failure::from);
    Success::with_warnings(done.map(AccountOut::from), warnings)
}

/// Parses the request; `SuspendAccountIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(i64, String), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = read_required_id(&mut fields, "id", findings);
    let reason = read_required_text(&mut fields, "reason", findings);
    fields.finish(findings);
    Ok((id, reason))
}
