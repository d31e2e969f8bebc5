//! domains/list: the domains of a server and its account, or of an account and its servers.

use crate::documented::ToSchema;
use postroad_app::domains::{DomainListFilter, NamedOwner};
use postroad_model::{DomainId, DomainName};
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::domain_out::{DOMAIN_BYTES, DomainOut};
use super::shared_params::read_owner;
use crate::endpoint::AccountCall;
use crate::envelope::{Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, Pagination, read_cursor, read_limit};

/// Filter and page of the list.
#[request_fields]
#[schema(example = json!({"limit": 50}))]
pub(crate) struct ListDomainsIn {
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
    /// Id of a server, with an account's or the operator's key: only its own domains, and those of its
    /// account that have other names.
    server: Option<i64>,
    /// Id of an account. If left out, the operator's key lists the domains of all accounts, an account key those of its
    /// own.
    account: Option<i64>,
    /// Only domains of this name.
    name: Option<String>,
    /// `true`: only verified domains; `false`: only unverified ones; all if left out.
    verified: Option<bool>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DomainListOut {
    items: Vec<DomainOut>,
}

/// List domains
///
/// In the order they were added. With a server's key, or with `server`: the domains of the server and of its account.
/// Otherwise all domains of the account and its servers. With the operator's key and no `account`: those of all
/// accounts.
#[crate::documented::path(
    post,
    path = "/api/v1/domains/list",
    tag = "domains",
    operation_id = "listDomains",
    request_body = ListDomainsIn,
    responses((status = 200, body = crate::documented::Answer<DomainListOut>)),
)]
pub(crate) async fn handle(call: AccountCall) -> Result<Success<DomainListOut>, Failure> {
    let mut findings = Findings::default();
    let ListRequest { owner, filter, after, limit } = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(limit * DOMAIN_BYTES).await?.into();
    let (found, has_more) = call.app.list_domains_as(&call.caller, owner, filter, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|view| view.domain.id.0.to_string());
    let flags = Flags { pagination: Some(Pagination::new(limit, next)), warnings, ..Flags::default() };
    let items = found.into_iter().map(DomainOut::from).collect();
    Ok(Success { data: DomainListOut { items }, flags, memory })
}

/// Parsed request.
#[derive(Debug)]
pub(crate) struct ListRequest {
    owner: NamedOwner,
    filter: DomainListFilter,
    after: Option<DomainId>,
    limit: usize,
}

/// Parses the request; `ListDomainsIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<ListRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(DomainId));
    let owner = read_owner(&mut fields, findings);
    let name = fields.text("name", findings);
    let name = name.and_then(|name| {
        let parsed = DomainName::parse_entered(&name);
        parsed.inspect_err(|problem| findings.problem("/name", format!("`name`: {problem}"))).ok()
    });
    let filter = DomainListFilter { name, verified: fields.flag("verified", findings) };
    fields.finish(findings);
    Ok(ListRequest { owner, filter, after, limit })
}
