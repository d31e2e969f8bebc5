//! domains/list: the domains that the server may send from.

use postroad_model::DomainId;
use serde::Serialize;
use utoipa::ToSchema;

use super::domain_out::{DOMAIN_BYTES, DomainOut};
use crate::endpoint::Call;
use crate::envelope::{Answer, Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, Pagination, read_cursor, read_limit};

/// Which page.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"limit": 50}))]
#[expect(
    dead_code,
    reason = "the shape for the OpenAPI document; a test compares its names with the reader's"
)]
pub(crate) struct ListDomainsIn {
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DomainListOut {
    items: Vec<DomainOut>,
}

/// List domains
///
/// The server's own and those of its account, in the order they were added.
#[utoipa::path(
    post,
    path = "/api/v1/domains/list",
    tag = "domains",
    operation_id = "listDomains",
    request_body = ListDomainsIn,
    responses((status = 200, body = Answer<DomainListOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<DomainListOut>, Failure> {
    let mut findings = Findings::default();
    let (limit, after) = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let memory = call.reserve_answer(limit * DOMAIN_BYTES).await?.into();
    let (found, has_more) = call.app.list_domains(&call.caller, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|view| view.domain.id.0.to_string());
    let flags = Flags { pagination: Some(Pagination::new(limit, next)), warnings, ..Flags::default() };
    let items = found.into_iter().map(DomainOut::from).collect();
    Ok(Success { data: DomainListOut { items }, flags, memory })
}

/// The fields of the request; their names are those of `ListDomainsIn`.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(usize, Option<DomainId>), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(DomainId));
    fields.finish(findings);
    Ok((limit, after))
}
