//! accounts/update: change an account.

use postroad_app::accounts::AccountUpdateRequest;
use postroad_model::AccountId;
use postroad_openapi_macros::request_fields;

use super::account_out::AccountOut;
use super::ceilings;
use crate::account_params::{read_integer, read_required_id};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Fields to change; omitted ones stay as they are.
#[request_fields]
#[schema(example = json!({"id": 12, "name": "acme", "ceilings": {"monthly_limit": 100_000}}))]
pub(crate) struct UpdateAccountIn {
    /// Id of the account.
    id: i64,
    /// Change it only if this is its `version`; else `VersionConflict`.
    if_version: Option<i64>,
    /// Unique; must not consist of digits only.
    name: Option<String>,
    ceilings: Option<ceilings::AccountCeilingsIn>,
}

/// Change an account
///
/// Changes its name and ceilings. Applies all given changes, or none if any is invalid.
#[crate::documented::path(
    post,
    path = "/api/v1/accounts/update",
    tag = "accounts",
    operation_id = "updateAnyAccount",
    request_body = UpdateAccountIn,
    responses((status = 200, body = crate::documented::Answer<AccountOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountOut>, Failure> {
    let mut findings = Findings::default();
    let (id, request) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.update_account_as(&call.caller, id, request).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountOut::from), warnings)
}

/// Parses the request; `UpdateAccountIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(AccountId, AccountUpdateRequest), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = AccountId(read_required_id(&mut fields, "id", findings));
    let if_version = read_integer(&mut fields, "if_version", findings);
    let name = fields.text("name", findings).map(Into::into);
    let ceilings = fields.object("ceilings", findings).map(|mut fields| {
        let ceilings = ceilings::read(&mut fields, findings);
        fields.finish(findings);
        ceilings
    });
    fields.finish(findings);
    Ok((id, AccountUpdateRequest { if_version, name, ceilings: ceilings.unwrap_or_default() }))
}
