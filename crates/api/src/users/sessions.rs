//! users/sessions: the open sessions of a person.

use crate::documented::ToSchema;
use postroad_model::UserId;
use postroad_openapi_macros::request_shape;
use serde::Serialize;

use super::user_out::SessionOut;
use crate::account_params::read_required_id;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Id of the person.
#[request_shape]
#[schema(example = json!({"id": 12}))]
pub(crate) struct UserSessionsIn {
    id: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserSessionsOut {
    items: Vec<SessionOut>,
}

/// List a person's sessions
///
/// Newest first, at most 50.
#[crate::documented::path(
    post,
    path = "/api/v1/users/sessions",
    tag = "users",
    operation_id = "listUserSessions",
    request_body = UserSessionsIn,
    responses((status = 200, body = crate::documented::Answer<UserSessionsOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<UserSessionsOut>, Failure> {
    let mut findings = Findings::default();
    let id = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let found = call.app.list_sessions_of(&call.caller, id).await.map_err(Failure::from);
    let shown =
        found.map(|found| UserSessionsOut { items: found.into_iter().map(SessionOut::from).collect() });
    Success::with_warnings(shown, warnings)
}

/// Parses the request; `UserSessionsIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<UserId, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = UserId(read_required_id(&mut fields, "id", findings));
    fields.finish(findings);
    Ok(id)
}
