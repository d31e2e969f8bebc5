//! templates/versions: the stored versions of a template, newest first.

use crate::documented::ToSchema;
use postroad_openapi_macros::request_fields;
use postroad_store::TemplateRef;
use serde::Serialize;

use super::shared_params::read_template;
use super::template_out::TemplateVersionOut;
use crate::endpoint::Call;
use crate::envelope::{AnswerMemory, Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, Pagination, read_cursor, read_limit};

/// The template, by `id` or `alias`, and a page.
#[request_fields]
#[schema(example = json!({"alias": "welcome"}))]
pub(crate) struct TemplateVersionsIn {
    /// Id of the template, an integer; or give its `alias`.
    id: Option<i64>,
    /// Alias of the template, if there is no `id`.
    alias: Option<String>,
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateVersionListOut {
    items: Vec<TemplateVersionOut>,
}

/// Parsed request.
#[derive(Debug)]
pub(crate) struct VersionsRequest {
    template: TemplateRef,
    limit: usize,
    before: Option<i64>,
}

/// List the versions of a template
///
/// Newest first. The newest 30 are kept, as well as the published one and the one published before it.
#[crate::documented::path(
    post,
    path = "/api/v1/templates/versions",
    tag = "templates",
    operation_id = "listTemplateVersions",
    request_body = TemplateVersionsIn,
    responses((status = 200, body = crate::documented::Answer<TemplateVersionListOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TemplateVersionListOut>, Failure> {
    let mut findings = Findings::default();
    let VersionsRequest { template, limit, before } = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let (template, found, has_more) =
        call.app.list_template_versions(&call.caller, template, before, limit).await?;
    let next = found.last().filter(|_| has_more).map(|info| info.version.to_string());
    let flags = Flags { pagination: Some(Pagination::new(limit, next)), warnings, ..Flags::default() };
    let items = found.into_iter().map(|info| TemplateVersionOut::new(info, template.published)).collect();
    Ok(Success { data: TemplateVersionListOut { items }, flags, memory: AnswerMemory::Small })
}

/// Parses the request; `TemplateVersionsIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<VersionsRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let template = read_template(&mut fields, findings);
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let before = read_cursor(&mut fields, findings, |text| text.parse().ok());
    fields.finish(findings);
    Ok(VersionsRequest { template, limit, before })
}
