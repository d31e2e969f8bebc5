//! users/revoke_session: end one session of a person, or all sessions.

use postroad_model::{UserId, UserSessionId};
use postroad_openapi_macros::request_fields;

use super::user_out::EndedSessionsOut;
use crate::account_params::{read_integer, read_required_id};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Ids of the person and the session.
#[request_fields]
#[schema(example = json!({"id": 12, "session": 34}))]
pub(crate) struct RevokeUserSessionIn {
    /// Id of the person.
    id: i64,
    /// Id of the session; all sessions of the person if left out.
    session: Option<i64>,
}

/// End a person's sessions
///
/// One session, or all of them without `session`.
#[crate::documented::path(
    post,
    path = "/api/v1/users/revoke_session",
    tag = "users",
    operation_id = "revokeUserSession",
    request_body = RevokeUserSessionIn,
    responses((status = 200, body = crate::documented::Answer<EndedSessionsOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<EndedSessionsOut>, Failure> {
    let mut findings = Findings::default();
    let (id, session) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let done = call.app.revoke_sessions_of(&call.caller, id, session).await.map_err(Failure::from);
    Success::with_warnings(done.map(|ended| EndedSessionsOut { ended }), warnings)
}

/// Parses the request; `RevokeUserSessionIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(UserId, Option<UserSessionId>), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = UserId(read_required_id(&mut fields, "id", findings));
    let session = read_integer(&mut fields, "session", findings).map(UserSessionId);
    fields.finish(findings);
    Ok((id, session))
}
