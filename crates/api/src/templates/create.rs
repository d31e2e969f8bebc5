//! templates/create: a template and its first version.

use axum::http::HeaderMap;
use postroad_app::accounts::CreationKey;
use postroad_app::templates::TemplateFields;
use postroad_openapi_macros::request_fields;

use super::shared_params::read_fields;
use super::template_out::{TemplateOut, changed_template_answer};
use crate::account_params::read_idempotency_key;
use crate::endpoint::Call;
use crate::envelope::Success;
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::{idempotency, json};

/// Fields of a new template.
#[request_fields]
#[schema(example = json!({
    "alias": "welcome",
    "name": "Welcome mail",
    "subject": "Welcome, {{ name }}",
    "html_body": "<p>Hello {{ name }}</p>",
    "publish": true
}))]
pub(crate) struct CreateTemplateIn {
    /// Letters, digits, dots, dashes and underscores, a letter first; unique on the server.
    alias: Option<String>,
    /// Name shown to people; 1 to 200 characters.
    name: String,
    /// `standard` (if left out) or `layout`, which surrounds the bodies of other templates.
    r#type: Option<String>,
    /// Jinja syntax, one line, up to 2,000 bytes. A layout has none.
    subject: Option<String>,
    /// Jinja syntax, up to 512 KiB. Variables are HTML-escaped.
    html_body: Option<String>,
    /// Jinja syntax, up to 512 KiB. Generated from the HTML if left out.
    plain_body: Option<String>,
    /// Format of `html_body`: `html` (if left out) or `mjml`.
    format: Option<String>,
    /// Whether style sheets are inlined into the elements; true if left out.
    inline_css: Option<bool>,
    /// Alias or id of a layout.
    layout: Option<String>,
    /// Texts of languages, by language tag: `{"de": {"subject": …, "html_body": …, "plain_body": …}}`; up to 30.
    locales: Option<std::collections::BTreeMap<String, TemplateTextsIn>>,
    /// Sample model for trying the template, up to 64 KiB of JSON.
    #[schema(value_type = Option<Object>)]
    sample_model: Option<serde_json::Value>,
    /// Publish it at once; false if left out.
    publish: Option<bool>,
    /// Alternative to the header Idempotency-Key.
    idempotency_key: Option<String>,
}

/// The texts of one language; missing ones come from the next more general language.
#[request_fields]
pub(crate) struct TemplateTextsIn {
    /// Like the template's `subject`.
    subject: Option<String>,
    /// Like the template's `html_body`.
    html_body: Option<String>,
    /// Like the template's `plain_body`.
    plain_body: Option<String>,
}

/// Create a template
///
/// Its texts become version 1, a draft unless `publish` is true. Errors in them are reported with their lines. With an
/// idempotency key, a repetition within 24 hours returns the template that the first call created.
#[crate::documented::path(
    post,
    path = "/api/v1/templates/create",
    tag = "templates",
    operation_id = "createTemplate",
    request_body = CreateTemplateIn,
    responses((status = 200, body = crate::documented::Answer<TemplateOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TemplateOut>, Failure> {
    let mut findings = Findings::default();
    let (fields, publish, key) = read(&call.headers, &call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let created = call.app.create_template(&call.caller, fields, publish, key).await;
    let created = created.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    let mut answer = changed_template_answer(&call, created.value, warnings).await;
    answer.flags.idempotent_replay = created.is_replay;
    Ok(answer)
}

/// Parses the request; `CreateTemplateIn` documents its fields.
pub(crate) fn read(
    headers: &HeaderMap,
    text: &[u8],
    findings: &mut Findings,
) -> Result<(TemplateFields, bool, Option<CreationKey>), Failure> {
    let object = json::parse_object(text)?;
    let fingerprint = idempotency::fingerprint(headers, "templates/create", &object);
    let mut fields = Fields::of_request(object);
    if fields.is_absent("name") {
        findings.missing("name");
    }
    let request = read_fields(&mut fields, "alias", findings);
    let publish = fields.flag("publish", findings).unwrap_or(false);
    let key = read_idempotency_key(headers, &mut fields, fingerprint, findings);
    fields.finish(findings);
    Ok((request, publish, key))
}
