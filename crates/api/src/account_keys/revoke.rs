//! account_keys/revoke: revoke a key of the account.

use postroad_model::{AccountId, AccountKeyId};
use postroad_openapi_macros::request_fields;

use super::account_key_out::AccountKeyOut;
use crate::account_params::{read_account, read_required_id};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Id of the key.
#[request_fields]
#[schema(example = json!({"id": 12}))]
pub(crate) struct RevokeAccountKeyIn {
    /// Id of the account key.
    id: i64,
    /// Id of the account; required with the operator's key.
    account: Option<i64>,
}

/// Revoke an account key
///
/// Takes effect at once on this node and within two seconds on others. Revoking again changes nothing.
#[crate::documented::path(
    post,
    path = "/api/v1/account_keys/revoke",
    tag = "account_keys",
    operation_id = "revokeAccountKey",
    request_body = RevokeAccountKeyIn,
    responses((status = 200, body = crate::documented::Answer<AccountKeyOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountKeyOut>, Failure> {
    let mut findings = Findings::default();
    let (account, id) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.revoke_account_key(&call.caller, account, id).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountKeyOut::from), warnings)
}

/// Parses the request; `RevokeAccountKeyIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(Option<AccountId>, AccountKeyId), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = AccountKeyId(read_required_id(&mut fields, "id", findings));
    let account = read_account(&mut fields, findings);
    fields.finish(findings);
    Ok((account, id))
}
