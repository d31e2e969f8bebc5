//! accounts/list: a page of all accounts.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_model::AccountId;
use postroad_openapi_macros::request_fields;
use postroad_store::AccountFilter;
use serde::Serialize;

use super::account_out::AccountOut;
use crate::account_params::page_flags;
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, read_cursor, read_limit};

/// Estimated memory of one entry in the answer.
const ENTRY_BYTES: usize = 2 << 10;

/// Filter and page of the list.
#[request_fields]
#[schema(example = json!({"limit": 50}))]
pub(crate) struct ListAccountsIn {
    /// Only the account of this name.
    name: Option<String>,
    /// `true`: only suspended accounts; `false`: only active ones; all if left out.
    suspended: Option<bool>,
    /// `true` lists the deleted accounts that can be restored, instead of the others.
    deleted: Option<bool>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountListOut {
    items: Vec<AccountOut>,
}

/// List accounts
///
/// In order of creation. For the operator.
#[crate::documented::path(
    post,
    path = "/api/v1/accounts/list",
    tag = "accounts",
    operation_id = "listAccounts",
    request_body = ListAccountsIn,
    responses((status = 200, body = crate::documented::Answer<AccountListOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountListOut>, Failure> {
    let mut findings = Findings::default();
    let (filter, after, limit) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * ENTRY_BYTES).await?.into();
    let (found, has_more) = call.app.list_accounts_as(&call.caller, filter, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|last| last.id.0.to_string());
    let items = found.into_iter().map(AccountOut::from).collect();
    Ok(Success { data: AccountListOut { items }, flags: page_flags(limit, next, warnings), memory })
}

/// Parses the request; `ListAccountsIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(AccountFilter, Option<AccountId>, usize), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let filter = AccountFilter {
        name: fields.text("name", findings).map(Cow::into_owned),
        name_part: None,
        suspended: fields.flag("suspended", findings),
        deleted: fields.flag("deleted", findings).unwrap_or(false),
    };
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(AccountId));
    fields.finish(findings);
    Ok((filter, after, limit))
}
