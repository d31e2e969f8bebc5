//! servers/list: a page of servers.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_model::ServerId;
use postroad_openapi_macros::request_fields;
use postroad_store::ServerFilter;
use serde::Serialize;

use super::account_server_out::AccountServerOut;
use crate::account_params::{page_flags, read_account};
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
pub(crate) struct ListServersIn {
    /// Only the server of this name.
    name: Option<String>,
    /// `true`: only suspended servers; `false`: only active ones; all if left out.
    suspended: Option<bool>,
    /// `true` lists the deleted servers that can be restored, instead of the others.
    deleted: Option<bool>,
    /// Id of an account. If left out, the operator's key lists the servers of all accounts, an account key those of its
    /// own.
    account: Option<i64>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerListOut {
    items: Vec<AccountServerOut>,
}

/// List servers
///
/// In order of creation.
#[crate::documented::path(
    post,
    path = "/api/v1/servers/list",
    tag = "servers",
    operation_id = "listServers",
    request_body = ListServersIn,
    responses((status = 200, body = crate::documented::Answer<ServerListOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<ServerListOut>, Failure> {
    let mut findings = Findings::default();
    let (filter, after, limit) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * ENTRY_BYTES).await?.into();
    let (found, has_more) = call.app.list_servers_as(&call.caller, filter, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|last| last.id.0.to_string());
    let items = found.into_iter().map(AccountServerOut::from).collect();
    Ok(Success { data: ServerListOut { items }, flags: page_flags(limit, next, warnings), memory })
}

/// Parses the request; `ListServersIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(ServerFilter, Option<ServerId>, usize), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let filter = ServerFilter {
        name: fields.text("name", findings).map(Cow::into_owned),
        suspended: fields.flag("suspended", findings),
        deleted: fields.flag("deleted", findings).unwrap_or(false),
        account_id: read_account(&mut fields, findings),
        name_part: None,
    };
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(ServerId));
    fields.finish(findings);
    Ok((filter, after, limit))
}
