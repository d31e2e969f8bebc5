//! accounts/get: one account.

use postroad_model::AccountId;
use postroad_openapi_macros::request_fields;

use super::account_out::AccountOut;
use crate::account_params::read_required_id;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Id of the account.
#[request_fields]
#[schema(example = json!({"id": 12}))]
pub(crate) struct AccountIdIn {
    /// Id of the account.
    id: i64,
}

/// Get an account
///
/// For the operator; an account calls account/get instead.
#[crate::documented::path(
    post,
    path = "/api/v1/accounts/get",
    tag = "accounts",
    operation_id = "getAnyAccount",
    request_body = AccountIdIn,
    responses((status = 200, body = crate::documented::Answer<AccountOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = call.app.find_account_as(&call.caller, AccountId(id)).await.map_err(Failure::from);
    Success::with_warnings(found.map(AccountOut::from), warnings)
}

/// Parses the request; `AccountIdIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<i64, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = read_required_id(&mut fields, "id", findings);
    fields.finish(findings);
    Ok(id)
}
