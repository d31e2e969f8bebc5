//! templates/update: change a template; what is left out stays. Texts become a new version.

use std::collections::BTreeMap;

use postroad_app::templates::TemplateFields;
use postroad_request_shapes::request_shape;
use postroad_store::TemplateRef;

use super::create::TemplateTextsIn;
use super::shared_params::{read_fields, read_template};
use super::template_out::{TemplateOut, shown};
use crate::endpoint::Call;
use crate::envelope::{Answer, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Changes. An empty text removes a value.
#[request_shape]
#[schema(example = json!({"alias": "welcome", "subject": "Welcome to us, {{ name }}"}))]
pub(crate) struct UpdateTemplateIn {
    id: Option<i64>,
    /// Names the template if there is no `id`.
    alias: Option<String>,
    /// Another alias for it.
    new_alias: Option<String>,
    name: Option<String>,
    /// Decided when the template was made; another is refused.
    r#type: Option<String>,
    /// Jinja syntax, one line, up to 2,000 bytes. A layout has none.
    subject: Option<String>,
    /// Jinja syntax, up to 512 KiB. Variables are HTML-escaped.
    html_body: Option<String>,
    /// Jinja syntax, up to 512 KiB. Made of the HTML if left out.
    plain_body: Option<String>,
    /// Format of `html_body`: `html` or `mjml`.
    format: Option<String>,
    /// Whether style sheets are written into the elements.
    inline_css: Option<bool>,
    /// Alias or id of a layout.
    layout: Option<String>,
    /// Texts of languages, by language tag: `{"de": {"subject": …, "html_body": …, "plain_body": …}}`; up to 30, all of them at once.
    locales: Option<BTreeMap<String, TemplateTextsIn>>,
    /// Sample model that the template is tried with, up to 64 KiB of JSON.
    #[schema(value_type = Option<Object>)]
    sample_model: Option<serde_json::Value>,
    /// Make mails of the newest version at once; false if left out.
    publish: Option<bool>,
}

/// Change a template
///
/// Changed texts become a new version, a draft unless `publish` is true: mails are made of the published version until
/// then. The newest 30 versions are kept.
#[utoipa::path(
    post,
    path = "/api/v1/templates/update",
    tag = "templates",
    operation_id = "updateTemplate",
    request_body = UpdateTemplateIn,
    responses((status = 200, body = Answer<TemplateOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TemplateOut>, Failure> {
    let mut findings = Findings::default();
    let (template, fields, publish) = read(&call.text, &mut findings)?;
    let warnings = findings.into_warnings()?;
    let changed = call.app.change_template(&call.caller, template, fields, publish).await;
    let changed = changed.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    shown(&call, changed, warnings).await
}

/// Parses the request; `UpdateTemplateIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(TemplateRef, TemplateFields, bool), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let template = read_template(&mut fields, findings);
    let given = read_fields(&mut fields, "new_alias", findings);
    let publish = fields.flag("publish", findings).unwrap_or(false);
    fields.finish(findings);
    Ok((template, given, publish))
}
