//! users/update: change a person's name, role or rights.

use postroad_app::users::UserChangeRequest;
use postroad_model::UserId;
use postroad_openapi_macros::request_fields;

use super::user_out::{UserOut, read_role};
use crate::account_params::{read_integer, read_required_id};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The person, and the changes.
#[request_fields]
#[schema(example = json!({"id": 12, "role": "admin"}))]
pub(crate) struct UpdateUserIn {
    /// Id of the person.
    id: i64,
    /// Change it only if this is its `version`; else `VersionConflict`.
    if_version: Option<i64>,
    /// Name of the person, up to 100 characters.
    name: Option<String>,
    /// `owner`, `admin`, `member` or `read-only`.
    role: Option<String>,
    /// Whether the person has the operator's rights as well; only the operator can set it.
    operator: Option<bool>,
}

/// Change a person
///
/// Omitted fields stay. The last owner of an account must stay an owner.
#[crate::documented::path(
    post,
    path = "/api/v1/users/update",
    tag = "users",
    operation_id = "updateUser",
    request_body = UpdateUserIn,
    responses((status = 200, body = crate::documented::Answer<UserOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<UserOut>, Failure> {
    let mut findings = Findings::default();
    let (id, request) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.update_user(&call.caller, id, request).await.map_err(Failure::from);
    Success::with_warnings(done.map(UserOut::from), warnings)
}

/// Parses the request; `UpdateUserIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(UserId, UserChangeRequest), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = UserId(read_required_id(&mut fields, "id", findings));
    let if_version = read_integer(&mut fields, "if_version", findings);
    let name = fields.text("name", findings).map(std::borrow::Cow::into_owned);
    let role = read_role(&mut fields, findings);
    let operator = fields.flag("operator", findings);
    fields.finish(findings);
    Ok((id, UserChangeRequest { if_version, name, role, operator }))
}
