//! account_keys/list: a page of account keys.

use postroad_model::{AccountId, AccountKeyId};
use postroad_request_shapes::request_shape;
use serde::Serialize;
use utoipa::ToSchema;

use super::account_key_out::AccountKeyOut;
use crate::account_params::{page_flags, read_account};
use crate::endpoint::AccountCall;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, read_cursor, read_limit};

/// Memory of one entry in an answer.
const ENTRY_BYTES: usize = 2 << 10;

/// Filter and page of the list.
#[request_shape]
#[schema(example = json!({"limit": 50}))]
pub(crate) struct ListAccountKeysIn {
    /// Id of the account; required with the operator's key.
    account: Option<i64>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountKeyListOut {
    items: Vec<AccountKeyOut>,
}

/// List account keys
///
/// In the order they were made, revoked and expired ones included.
#[utoipa::path(
    post,
    path = "/api/v1/account_keys/list",
    tag = "account_keys",
    operation_id = "listAccountKeys",
    request_body = ListAccountKeysIn,
    responses((status = 200, body = Answer<AccountKeyListOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<AccountKeyListOut>, Failure> {
    let mut findings = Findings::default();
    let (filter, after, limit) = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let memory = call.reserve_answer(limit * ENTRY_BYTES).await?.into();
    let (found, has_more) = call.app.list_account_keys(&call.caller, filter, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|last| last.id.0.to_string());
    let items = found.into_iter().map(AccountKeyOut::from).collect();
    Ok(Success { data: AccountKeyListOut { items }, flags: page_flags(limit, next, warnings), memory })
}

/// Parses the request; `ListAccountKeysIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(Option<AccountId>, Option<AccountKeyId>, usize), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let filter = read_account(&mut fields, findings);
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(AccountKeyId));
    fields.finish(findings);
    Ok((filter, after, limit))
}
