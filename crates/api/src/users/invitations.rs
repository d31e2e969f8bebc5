//! users/invitations: open invitations of an account.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_model::{AccountId, InvitationId};
use postroad_openapi_macros::request_fields;
use postroad_store::InvitationFilter;
use serde::Serialize;

use super::user_out::{InvitationOut, read_role};
use crate::account_params::{page_flags, read_account};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, read_cursor, read_limit};

/// Estimated memory of one entry in an answer.
const ENTRY_BYTES: usize = 2 << 10;

/// Filter and page of the list.
#[request_fields]
#[schema(example = json!({"limit": 50}))]
pub(crate) struct ListInvitationsIn {
    /// Id of the account; required with the operator's key.
    account: Option<i64>,
    /// Only the invitation of this address.
    email: Option<String>,
    /// Only invitations with this role: `owner`, `admin`, `member` or `read-only`.
    role: Option<String>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListInvitationsOut {
    items: Vec<InvitationOut>,
}

/// List invitations
///
/// Invitations that are neither accepted nor expired, without their links.
#[crate::documented::path(
    post,
    path = "/api/v1/users/invitations",
    tag = "users",
    operation_id = "listInvitations",
    request_body = ListInvitationsIn,
    responses((status = 200, body = crate::documented::Answer<ListInvitationsOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<ListInvitationsOut>, Failure> {
    let mut findings = Findings::default();
    let (account, filter, after, limit) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * ENTRY_BYTES).await?.into();
    let (found, has_more) = call.app.list_invitations(&call.caller, account, filter, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|last| last.id.0.to_string());
    let items = found.into_iter().map(InvitationOut::from).collect();
    Ok(Success { data: ListInvitationsOut { items }, flags: page_flags(limit, next, warnings), memory })
}

/// Parses the request; `ListInvitationsIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(Option<AccountId>, InvitationFilter, Option<InvitationId>, usize), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let account = read_account(&mut fields, findings);
    let filter = InvitationFilter {
        email: fields.text("email", findings).map(Cow::into_owned),
        role: read_role(&mut fields, findings),
    };
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(InvitationId));
    fields.finish(findings);
    Ok((account, filter, after, limit))
}
