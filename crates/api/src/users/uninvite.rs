//! users/uninvite: revoke an invitation.

use postroad_model::{AccountId, InvitationId};
use postroad_openapi_macros::request_fields;

use super::user_out::UninvitedOut;
use crate::account_params::{read_account, read_required_id};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Id of the invitation.
#[request_fields]
#[schema(example = json!({"id": 12}))]
pub(crate) struct UninviteUserIn {
    /// Id of the invitation.
    id: i64,
    /// Id of the account; required with the operator's key.
    account: Option<i64>,
}

/// Revoke an invitation
///
/// Its link stops working at once.
#[crate::documented::path(
    post,
    path = "/api/v1/users/uninvite",
    tag = "users",
    operation_id = "uninviteUser",
    request_body = UninviteUserIn,
    responses((status = 200, body = crate::documented::Answer<UninvitedOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<UninvitedOut>, Failure> {
    let mut findings = Findings::default();
    let (account, id) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.uninvite_user(&call.caller, account, id).await.map_err(Failure::from);
    Success::with_warnings(done.map(|()| UninvitedOut { id: id.0 }), warnings)
}

/// Parses the request; `UninviteUserIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(Option<AccountId>, InvitationId), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = InvitationId(read_required_id(&mut fields, "id", findings));
    let account = read_account(&mut fields, findings);
    fields.finish(findings);
    Ok((account, id))
}
