//! templates/update: change a template; omitted fields stay. Texts become a new version.

use postroad_app::templates::TemplateFields;
use postroad_openapi_macros::request_fields;
use postroad_store::TemplateRef;

use super::shared_params::{read_fields, read_template};
use super::template_out::{TemplateOut, changed_template_answer};
use crate::account_params::read_integer;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Changes. An empty text removes a value, except for `name`.
#[request_fields]
#[schema(example = json!({"alias": "welcome", "subject": "Welcome to us, {{ name }}"}))]
pub(crate) struct UpdateTemplateIn {
    /// Id of the template, an integer.
    id: Option<i64>,
    /// Change it only if this is its newest version; else `VersionConflict`.
    if_version: Option<i64>,
    /// Identifies the template if there is no `id`.
    alias: Option<String>,
    /// A new alias.
    new_alias: Option<String>,
    /// Name shown to people; 1 to 200 characters; cannot be removed.
    name: Option<String>,
    /// Set when the template was created; another type is refused.
    r#type: Option<String>,
    /// Jinja syntax, one line, up to 2,000 bytes. A layout has none.
    subject: Option<String>,
    /// Jinja syntax, up to 512 KiB. Variables are HTML-escaped.
    html_body: Option<String>,
    /// Jinja syntax, up to 512 KiB. Generated from the HTML if it is an empty text.
    plain_body: Option<String>,
    /// Format of `html_body`: `html` or `mjml`.
    format: Option<String>,
    /// Whether style sheets are inlined into the elements.
    inline_css: Option<bool>,
    /// Alias or id of a layout.
    layout: Option<String>,
    /// Texts of languages, by language tag: `{"de": {"subject": …, "html_body": …, "plain_body": …}}`; up to 30.
    /// Replaces all languages.
    locales: Option<std::collections::BTreeMap<String, super::create::TemplateTextsIn>>,
    /// Sample model for trying the template, up to 64 KiB of JSON.
    #[schema(value_type = Option<Object>)]
    sample_model: Option<serde_json::Value>,
    /// Publish the newest version at once; false if left out.
    publish: Option<bool>,
}

/// Change a template
///
/// Changed texts become a new version, a draft unless `publish` is true: mails are rendered from the published version
/// until then. The newest 30 versions are kept.
#[crate::documented::path(
    post,
    path = "/api/v1/templates/update",
    tag = "templates",
    operation_id = "updateTemplate",
    request_body = UpdateTemplateIn,
    responses((status = 200, body = crate::documented::Answer<TemplateOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TemplateOut>, Failure> {
    let mut findings = Findings::default();
    let UpdateRequest { template, if_version, fields, publish } = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let changed = call.app.change_template(&call.caller, template, if_version, fields, publish).await;
    let changed = changed.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    Ok(changed_template_answer(&call, changed, warnings).await)
}

/// Parsed request.
pub(crate) struct UpdateRequest {
    template: TemplateRef,
    if_version: Option<i64>,
    fields: TemplateFields,
    publish: bool,
}

/// Parses the request; `UpdateTemplateIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<UpdateRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let template = read_template(&mut fields, findings);
    let if_version = read_integer(&mut fields, "if_version", findings);
    let request = read_fields(&mut fields, "new_alias", findings);
    let publish = fields.flag("publish", findings).unwrap_or(false);
    fields.finish(findings);
    Ok(UpdateRequest { template, if_version, fields: request, publish })
}
