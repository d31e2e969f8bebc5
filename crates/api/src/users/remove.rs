//! users/remove: remove a person.

use postroad_model::UserId;
use postroad_openapi_macros::request_fields;

use super::user_out::UserOut;
use crate::account_params::read_required_id;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Id of the person.
#[request_fields]
#[schema(example = json!({"id": 12}))]
pub(crate) struct RemoveUserIn {
    /// Id of the person.
    id: i64,
}

/// Remove a person
///
/// The person's sessions end at once. Only the operator can remove the last owner of an account.
#[crate::documented::path(
    post,
    path = "/api/v1/users/remove",
    tag = "users",
    operation_id = "removeUser",
    request_body = RemoveUserIn,
    responses((status = 200, body = crate::documented::Answer<UserOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<UserOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.remove_user(&call.caller, id).await.map_err(Failure::from);
    Success::with_warnings(done.map(UserOut::from), warnings)
}

/// Parses the request; `RemoveUserIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<UserId, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = UserId(read_required_id(&mut fields, "id", findings));
    fields.finish(findings);
    Ok(id)
}
