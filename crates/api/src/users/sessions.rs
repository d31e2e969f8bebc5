//! users/sessions: the open sessions of a person.

use crate::documented::ToSchema;
use postroad_model::{UserId, UserSessionId};
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::user_out::SessionOut;
use crate::account_params::{page_flags, read_required_id};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, read_cursor, read_limit};

/// Estimated memory of one entry in an answer.
const SESSION_BYTES: usize = 1 << 10;

/// The person, and the page of the list.
#[request_fields]
#[schema(example = json!({"id": 12}))]
pub(crate) struct UserSessionsIn {
    /// Id of the person.
    id: i64,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserSessionsOut {
    items: Vec<SessionOut>,
}

/// List a person's sessions
///
/// Newest first. A person has at most 50.
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
    let (id, before, limit) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * SESSION_BYTES).await?.into();
    let (found, has_more) = call.app.list_sessions_of(&call.caller, id, before, limit).await?;
    let next = found.last().filter(|_| has_more).map(|last| last.id.0.to_string());
    let items = found.into_iter().map(SessionOut::from).collect();
    Ok(Success { data: UserSessionsOut { items }, flags: page_flags(limit, next, warnings), memory })
}

/// Parses the request; `UserSessionsIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(UserId, Option<UserSessionId>, usize), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let id = UserId(read_required_id(&mut fields, "id", findings));
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let before = read_cursor(&mut fields, findings, |text| text.parse().ok().map(UserSessionId));
    fields.finish(findings);
    Ok((id, before, limit))
}
