//! templates/get: a template with one of its versions.

use postroad_app::templates::VersionRequest;
use postroad_openapi_macros::request_fields;

use super::shared_params::{read_loose_integer, read_template};
use super::template_out::{TemplateOut, template_answer};
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The template, by `id` or `alias`, and its version.
#[request_fields]
#[schema(example = json!({"alias": "welcome"}))]
pub(crate) struct TemplateVersionIn {
    /// Id of the template, an integer; or give its `alias`.
    id: Option<i64>,
    /// Alias of the template, if there is no `id`.
    alias: Option<String>,
    /// Number of a version; if left out, `get` and `publish` take the newest one, and `rollback` the one that was published
    /// before.
    version: Option<i64>,
}

/// Get a template
///
/// The newest version, or the one named by `version`. The id of another server's template is
/// reported as unknown.
#[crate::documented::path(
    post,
    path = "/api/v1/templates/get",
    tag = "templates",
    operation_id = "getTemplate",
    request_body = TemplateVersionIn,
    responses((status = 200, body = crate::documented::Answer<TemplateOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TemplateOut>, Failure> {
    let mut findings = Findings::default();
    let VersionRequest { template, version } = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = call.app.find_template(&call.caller, template, version).await;
    let found = found.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    template_answer(&call, found, warnings).await
}

/// Parses the request; `TemplateVersionIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<VersionRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let template = read_template(&mut fields, findings);
    let version = read_loose_integer(&mut fields, "version", findings);
    fields.finish(findings);
    Ok(VersionRequest { template, version })
}
