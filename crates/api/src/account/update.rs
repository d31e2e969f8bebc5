//! account/update: change the account of the key.

use postroad_model::AccountId;
use postroad_openapi_macros::request_fields;

use crate::account_params::{read_account, read_integer, read_required_text};
use crate::accounts::account_out::AccountOut;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The account's new name.
// "Own": without `account`, it is the account of the calling key. In `UpdateAccountIn` of accounts/* the id is
// required.
#[request_fields]
#[schema(example = json!({"name": "acme"}))]
pub(crate) struct UpdateOwnAccountIn {
    /// Change it only if this is its `version`; else `VersionConflict`.
    if_version: Option<i64>,
    /// Must not consist of digits only. With the operator's key it must be unique among all accounts.
    name: String,
    /// Id of the account; required with the operator's key.
    account: Option<i64>,
}

/// Change the account
///
/// Changes its name.
#[crate::documented::path(
    post,
    path = "/api/v1/account/update",
    tag = "account",
    operation_id = "updateAccount",
    request_body = UpdateOwnAccountIn,
    responses((status = 200, body = crate::documented::Answer<AccountOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountOut>, Failure> {
    let mut findings = Findings::default();
    let (id, if_version, name) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.rename_own_account(&call.caller, id, if_version, &name).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountOut::from), warnings)
}

/// Parses the request; `UpdateOwnAccountIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(Option<AccountId>, Option<i64>, String), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = read_account(&mut fields, findings);
    let if_version = read_integer(&mut fields, "if_version", findings);
    let name = read_required_text(&mut fields, "name", findings);
    fields.finish(findings);
    Ok((id, if_version, name))
}
