//! account/get: the account of the key, or the account that an operator key names.

use postroad_model::AccountId;
use postroad_openapi_macros::request_fields;

use crate::account_params::read_account;
use crate::accounts::account_out::AccountOut;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The account, which only operator keys have to name.
// "Own": without `account`, it is the account of the calling key. In `AccountIdIn` of accounts/* the id is required.
#[request_fields]
#[schema(example = json!({}))]
pub(crate) struct OwnAccountIn {
    /// Id of the account; required with the operator's key.
    account: Option<i64>,
}

/// Get the account
///
/// The account of the key; with an operator key, the account that the request names.
#[crate::documented::path(
    post,
    path = "/api/v1/account/get",
    tag = "account",
    operation_id = "getAccount",
    request_body = OwnAccountIn,
    responses((status = 200, body = crate::documented::Answer<AccountOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountOut>, Failure> {
    let mut findings = Findings::default();
    let account = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = call.app.find_own_account(&call.caller, account).await.map_err(Failure::from);
    Success::with_warnings(found.map(AccountOut::from), warnings)
}

/// Parses the request; `OwnAccountIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<Option<AccountId>, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let account = read_account(&mut fields, findings);
    fields.finish(findings);
    Ok(account)
}
