//! templates/list: the templates and layouts of the server, oldest first.

use crate::documented::ToSchema;
use postroad_model::TemplateId;
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::template_out::TemplateHeadOut;
use crate::endpoint::Call;
use crate::envelope::{AnswerMemory, Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;
use crate::page::{LIMIT_DEFAULT, LIMIT_MAX, Pagination, read_cursor, read_limit};

/// Filter and page of the list.
#[request_fields]
#[schema(example = json!({"limit": 50}))]
pub(crate) struct ListTemplatesIn {
    /// Up to 500; 50 if left out.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateListOut {
    items: Vec<TemplateHeadOut>,
}

/// List templates
///
/// Without their texts, which templates/get returns.
#[crate::documented::path(
    post,
    path = "/api/v1/templates/list",
    tag = "templates",
    operation_id = "listTemplates",
    request_body = ListTemplatesIn,
    responses((status = 200, body = crate::documented::Answer<TemplateListOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TemplateListOut>, Failure> {
    let mut findings = Findings::default();
    let (limit, after) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let (found, has_more) = call.app.list_templates(&call.caller, None, after, limit).await?;
    let next = found.last().filter(|_| has_more).map(|template| template.id.0.to_string());
    let flags = Flags { pagination: Some(Pagination::new(limit, next)), warnings, ..Flags::default() };
    let items = found.into_iter().map(TemplateHeadOut::from).collect();
    Ok(Success { data: TemplateListOut { items }, flags, memory: AnswerMemory::Small })
}

/// Parses the request; `ListTemplatesIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<(usize, Option<TemplateId>), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let limit = read_limit(&mut fields, findings, LIMIT_DEFAULT, LIMIT_MAX);
    let after = read_cursor(&mut fields, findings, |text| text.parse().ok().map(TemplateId));
    fields.finish(findings);
    Ok((limit, after))
}
