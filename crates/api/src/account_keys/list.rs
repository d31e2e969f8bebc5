//! account_keys/list: a page of account keys.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_model::{AccountId, AccountKeyId};
use postroad_openapi_macros::request_fields;
use postroad_store::AccountKeyFilter;
use serde::Serialize;

use super::account_key_out::AccountKeyOut;
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
pub(crate) struct ListAccountKeysIn {
    /// Id of the account; required with the operator's key.
    account: Option<i64>,
    /// Only keys of this name.
    name: Option<String>,
    /// `true`: only revoked keys; `false`: only those not revoked; all if left out.
    revoked: Option<bool>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountKeyListOut {
    items: Vec<AccountKeyOut>,
}

/// List account keys
///
/// In order of creation, including revoked and expired ones.
#[crate::documented::path(
    post,
    path = "/api/v1/account_keys/list",
    tag = "account_keys",
    operation_id = "listAccountKeys",
    request_body = ListAccountKeysIn,
    responses((status = 200, body = crate::documented::Answer<AccountKeyListOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountKeyListOut>, Failure> {
    let mut findings = Findings::default();
    let (account, filter, after, limit) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * ENTRY_BYTES).await?.into();
    let (found, has_more) = call.app.list_account_keys(&call.caller, account, filter, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|last| last.id.0.to_string());
    let items = found.into_iter().map(AccountKeyOut::from).collect();
    Ok(Success { data: AccountKeyListOut { items }, flags: page_flags(limit, next, warnings), memory })
}

/// Parses the request; `ListAccountKeysIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(Option<AccountId>, AccountKeyFilter, Option<AccountKeyId>, usize), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let account = read_account(&mut fields, findings);
    let filter = AccountKeyFilter {
        name: fields.text("name", findings).map(Cow::into_owned),
        revoked: fields.flag("revoked", findings),
    };
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(AccountKeyId));
    fields.finish(findings);
    Ok((account, filter, after, limit))
}
