//! users/invite: invite a person to an account.

use postroad_app::users::InvitationRequest;
use postroad_model::{CountedThing, UserRole};
use postroad_request_shapes::request_shape;

use super::user_out::{InvitedOut, read_role};
use crate::account_params::{read_account, read_required_text};
use crate::endpoint::AccountCall;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Whom, as what.
#[request_shape]
#[schema(example = json!({"email": "anna@example.com", "role": "member"}))]
pub(crate) struct InviteUserIn {
    email: String,
    /// `owner`, `admin`, `member` or `read-only`; `member` if left out.
    role: Option<String>,
    /// Also does what only the operator may; set by the operator.
    operator: Option<bool>,
    /// Whether the link is mailed; true if left out.
    mail: Option<bool>,
    /// Id of the account; required with the operator's key.
    account: Option<i64>,
}

/// Invite a person
///
/// Mails a link by which the person chooses a password; the link is also in this answer, and only there. A second
/// invitation of the same address replaces the first. It ends after seven days.
#[utoipa::path(
    post,
    path = "/api/v1/users/invite",
    tag = "users",
    operation_id = "inviteUser",
    request_body = InviteUserIn,
    responses((status = 200, body = Answer<InvitedOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<InvitedOut>, Failure> {
    let mut findings = Findings::default();
    let given = read(&call.text, &mut findings)?;
    let mut warnings = findings.into_warnings()?;
    let done = call.app.invite_user(&call.caller, given).await.map_err(Failure::from);
    if let Ok(invited) = &done {
        let account_id = invited.invitation.account_id;
        warnings.extend(call.app.ceiling_warning(account_id, CountedThing::Users).await);
    }
    Success::with_warnings(done.map(InvitedOut::from), warnings)
}

/// Parses the request; `InviteUserIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<InvitationRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let email = read_required_text(&mut fields, "email", findings);
    let role = read_role(&mut fields, findings).unwrap_or(UserRole::Member);
    let operator = fields.flag("operator", findings).unwrap_or(false);
    let mail = fields.flag("mail", findings).unwrap_or(true);
    let account = read_account(&mut fields, findings);
    fields.finish(findings);
    Ok(InvitationRequest { account, email, role, operator, mail })
}
