//! ip_pools/list: a page of pools.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_app::ip_pools::PoolFilter;
use postroad_model::PoolId;
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::pool_out::{POOL_BYTES, PoolOut};
use crate::account_params::{page_flags, read_account};
use crate::endpoint::AccountCall;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, read_cursor, read_limit};

/// Filter and page of the list.
#[request_fields]
#[schema(example = json!({"limit": 50}))]
pub(crate) struct ListPoolsIn {
    /// Id of an account: the pools that it sees. If left out, the operator's key lists all pools, an account key those that
    /// its account sees.
    account: Option<i64>,
    /// Only the pool of this name.
    name: Option<String>,
    /// `true`: only the shared pool, which servers without a pool of their own send from; `false`: only the others; all if
    /// left out.
    shared: Option<bool>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PoolListOut {
    items: Vec<PoolOut>,
}

/// List pools
///
/// In order of creation. An account sees its own pools, the shared pool, and pools that its servers use.
#[crate::documented::path(
    post,
    path = "/api/v1/ip_pools/list",
    tag = "ip_pools",
    operation_id = "listIpPools",
    request_body = ListPoolsIn,
    responses((status = 200, body = crate::documented::Answer<PoolListOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<PoolListOut>, Failure> {
    let mut findings = Findings::default();
    let (filter, after, limit) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * POOL_BYTES).await?.into();
    let (found, has_more) = call.app.list_ip_pools(&call.caller, filter, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|last| last.pool.id.0.to_string());
    let items = found.into_iter().map(PoolOut::from).collect();
    Ok(Success { data: PoolListOut { items }, flags: page_flags(limit, next, warnings), memory })
}

/// Parses the request; `ListPoolsIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(PoolFilter, Option<PoolId>, usize), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let filter = PoolFilter {
        account: read_account(&mut fields, findings),
        name: fields.text("name", findings).map(Cow::into_owned),
        shared: fields.flag("shared", findings),
    };
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(PoolId));
    fields.finish(findings);
    Ok((filter, after, limit))
}
