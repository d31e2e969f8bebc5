//! users/invite: invite a person to an account.

use axum::http::HeaderMap;
use postroad_app::users::InvitationRequest;
use postroad_model::{LimitedObject, UserRole};
use postroad_openapi_macros::request_fields;

use super::user_out::{InvitedOut, read_role};
use crate::account_params::{creation_answer, read_account, read_idempotency_key, read_required_text};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::{idempotency, json};

/// Address and role.
#[request_fields]
#[schema(example = json!({"email": "anna@example.com", "role": "member"}))]
pub(crate) struct InviteUserIn {
    /// E-mail address of the person to invite.
    email: String,
    /// `owner`, `admin`, `member` or `read-only`; `member` if left out.
    role: Option<String>,
    /// Grants the operator's rights as well; only the operator can set it.
    operator: Option<bool>,
    /// Whether the link is mailed; true if left out. Only the operator may set it to false, and then passes the link on.
    mail: Option<bool>,
    /// Id of the account; required with the operator's key.
    account: Option<i64>,
    /// Alternative to the header Idempotency-Key.
    idempotency_key: Option<String>,
}

/// Invite a person
///
/// Mails a link by which the person chooses a password. A second invitation of the same address replaces the first. An
/// invitation ends after seven days. With an idempotency key, a repetition within 24 hours sends no second mail and
/// answers with the first invitation.
#[crate::documented::path(
    post,
    path = "/api/v1/users/invite",
    tag = "users",
    operation_id = "inviteUser",
    request_body = InviteUserIn,
    responses((status = 200, body = crate::documented::Answer<InvitedOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<InvitedOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.headers, &call.body, &mut findings)?;
    let mut warnings = findings.reject_problems()?;
    let created = call.app.invite_user(&call.caller, request).await?;
    let account_id = created.value.invitation.account_id;
    warnings.extend(call.app.ceiling_warning(account_id, LimitedObject::Users).await);
    let limit = created.value.limit.map(Into::into);
    let mut answer = creation_answer(created, InvitedOut::from, warnings);
    answer.flags.rate_limit = limit;
    Ok(answer)
}

/// Parses the request; `InviteUserIn` documents its fields.
pub(crate) fn read(
    headers: &HeaderMap,
    text: &[u8],
    findings: &mut Findings,
) -> Result<InvitationRequest, Failure> {
    let object = json::parse_object(text)?;
    let fingerprint = idempotency::fingerprint(headers, "users/invite", &object);
    let mut fields = Fields::of_request(object);
    let email = read_required_text(&mut fields, "email", findings);
    let role = read_role(&mut fields, findings).unwrap_or(UserRole::Member);
    let operator = fields.flag("operator", findings).unwrap_or(false);
    let mail = fields.flag("mail", findings).unwrap_or(true);
    let account = read_account(&mut fields, findings);
    let idempotency_key = read_idempotency_key(headers, &mut fields, fingerprint, findings);
    fields.finish(findings);
    Ok(InvitationRequest { account, email, role, operator, mail, idempotency_key })
}
