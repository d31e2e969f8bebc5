//! templates/delete: delete a template and all its versions.

use crate::documented::ToSchema;
use postroad_openapi_macros::request_fields;
use postroad_store::TemplateRef;
use serde::Serialize;

use super::shared_params::read_template;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The template, by `id` or `alias`.
#[request_fields]
#[schema(example = json!({"alias": "welcome"}))]
pub(crate) struct TemplateRefIn {
    /// Id of the template, an integer; or give its `alias`.
    id: Option<i64>,
    /// Alias of the template, if there is no `id`.
    alias: Option<String>,
}

/// The deleted object.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedTemplateOut {
    id: i64,
    deleted: bool,
}

/// Delete a template
///
/// Mails that Postroad has accepted are not changed. A layout that templates use cannot be deleted.
#[crate::documented::path(
    post,
    path = "/api/v1/templates/delete",
    tag = "templates",
    operation_id = "deleteTemplate",
    request_body = TemplateRefIn,
    responses((status = 200, body = crate::documented::Answer<DeletedTemplateOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<DeletedTemplateOut>, Failure> {
    let mut findings = Findings::default();
    let template = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let deleted = call.app.delete_template(&call.caller, template).await.map_err(Failure::from);
    Success::with_warnings(deleted.map(|id| DeletedTemplateOut { id: id.0, deleted: true }), warnings)
}

/// Parses the request; `TemplateRefIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<TemplateRef, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let template = read_template(&mut fields, findings);
    fields.finish(findings);
    Ok(template)
}
