//! accounts/update: change a customer.

use postroad_model::AccountId;
use utoipa::ToSchema;

use super::account_out::AccountOut;
use crate::account_params::{read_integer, read_required_id, read_required_text};
use crate::endpoint::AccountCall;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The account's new name.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"id": 12, "name": "acme"}))]
#[expect(
    dead_code,
    reason = "the shape for the OpenAPI document; a test compares its names with the reader's"
)]
pub(crate) struct UpdateAccountIn {
    id: i64,
    /// Change it only if this is its `version`; else `VersionConflict`.
    if_version: Option<i64>,
    /// Unique, and not a number.
    name: String,
}

/// Change an account
///
/// Its name.
#[utoipa::path(
    post,
    path = "/api/v1/accounts/update",
    tag = "accounts",
    operation_id = "updateAnyAccount",
    request_body = UpdateAccountIn,
    responses((status = 200, body = Answer<AccountOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountOut>, Failure> {
    let mut findings = Findings::default();
    let (id, if_version, name) = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let done = call.app.rename_customer(&call.caller, id, if_version, &name).await.map_err(Failure::from);
    Success::with_warnings(done.map(AccountOut::from), warnings)
}

/// The fields of the request; their names are those of `UpdateAccountIn`.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(AccountId, Option<i64>, String), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = AccountId(read_required_id(&mut fields, "id", findings));
    let if_version = read_integer(&mut fields, "if_version", findings);
    let name = read_required_text(&mut fields, "name", findings);
    fields.finish(findings);
    Ok((id, if_version, name))
}
