//! users/list: the people of an account.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_model::UserId;
use postroad_openapi_macros::request_fields;
use postroad_store::UserFilter;
use serde::Serialize;

use super::user_out::{UserOut, read_role};
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
pub(crate) struct ListUsersIn {
    /// Id of an account. If left out, the operator's key lists the people of all accounts, an account key those of its
    /// own.
    account: Option<i64>,
    /// Only the person with this address.
    email: Option<String>,
    /// Only people with this role: `owner`, `admin`, `member` or `read-only`.
    role: Option<String>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListUsersOut {
    items: Vec<UserOut>,
}

/// List people
///
/// People who sign in to the portal, in order of creation.
#[crate::documented::path(
    post,
    path = "/api/v1/users/list",
    tag = "users",
    operation_id = "listUsers",
    request_body = ListUsersIn,
    responses((status = 200, body = crate::documented::Answer<ListUsersOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<ListUsersOut>, Failure> {
    let mut findings = Findings::default();
    let (filter, after, limit) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * ENTRY_BYTES).await?.into();
    let (found, has_more) = call.app.list_users(&call.caller, filter, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|last| last.id.0.to_string());
    let items = found.into_iter().map(UserOut::from).collect();
    Ok(Success { data: ListUsersOut { items }, flags: page_flags(limit, next, warnings), memory })
}

/// Parses the request; `ListUsersIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(UserFilter, Option<UserId>, usize), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let filter = UserFilter {
        account_id: read_account(&mut fields, findings),
        email: fields.text("email", findings).map(Cow::into_owned),
        role: read_role(&mut fields, findings),
    };
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(UserId));
    fields.finish(findings);
    Ok((filter, after, limit))
}
