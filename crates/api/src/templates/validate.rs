//! templates/validate: check texts without saving them.

use crate::documented::ToSchema;
use postroad_app::templates::{TemplateFields, TemplateProblem};
use postroad_openapi_macros::request_fields;
use postroad_store::TemplateRef;
use serde::Serialize;

use super::shared_params::{read_content, read_optional_template};
use crate::endpoint::Call;
use crate::envelope::{Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// Texts to check. If `id` or `alias` names a template, its texts are used for those left out.
#[request_fields]
#[schema(example = json!({"subject": "Hello {{ name }}", "html_body": "<p>{{ user.name }</p>"}))]
pub(crate) struct ValidateTemplateIn {
    /// Id of a stored template, an integer; its texts are used for those left out.
    id: Option<i64>,
    /// Alias of that template, if there is no `id`.
    alias: Option<String>,
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
    locales: Option<std::collections::BTreeMap<String, super::create::TemplateTextsIn>>,
    /// Sample model for trying the template, up to 64 KiB of JSON.
    #[schema(value_type = Option<Object>)]
    sample_model: Option<serde_json::Value>,
}

/// Results of checking the texts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ValidationOut {
    valid: bool,
    errors: Vec<TemplateProblemOut>,
    /// Variables of the texts, such as `user.name` and `items[].price`.
    variables: Vec<String>,
    /// A value for each variable, guessed from its use.
    #[schema(value_type = Object)]
    suggested_model: serde_json::Map<String, serde_json::Value>,
}

/// One error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateProblemOut {
    /// The text with the error, such as `html_body` or `locales/de/subject`.
    part: String,
    /// From 1; 0 for the whole text.
    line: usize,
    /// From 1, in characters.
    column: usize,
    message: String,
}

/// Approximate size of an answer: the list of variables, and the model built from them.
const ANSWER_BYTES: usize = 256 << 10;

/// Validate a template
///
/// Saves nothing. The first error of each text is reported with line and column.
#[crate::documented::path(
    post,
    path = "/api/v1/templates/validate",
    tag = "templates",
    operation_id = "validateTemplate",
    request_body = ValidateTemplateIn,
    responses((status = 200, body = crate::documented::Answer<ValidationOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<ValidationOut>, Failure> {
    let mut findings = Findings::default();
    let (template, fields) = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let memory = call.reserve_answer(ANSWER_BYTES).await?.into();
    let found = call.app.validate_template(&call.caller, template, fields).await;
    let found = found.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    let data = ValidationOut {
        valid: found.is_valid(),
        errors: found.problems.into_iter().map(TemplateProblemOut::from).collect(),
        variables: found.variables,
        suggested_model: found.suggested_model,
    };
    Ok(Success { data, flags: Flags { warnings, ..Flags::default() }, memory })
}

impl From<TemplateProblem> for TemplateProblemOut {
    fn from(problem: TemplateProblem) -> Self {
        let TemplateProblem { part, line, column, message } = problem;
        Self { part, line, column, message }
    }
}

/// Parses the request; `ValidateTemplateIn` documents its fields.
pub(crate) fn read(
    text: &[u8],
    findings: &mut Findings,
) -> Result<(Option<TemplateRef>, TemplateFields), Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let template = read_optional_template(&mut fields, findings);
    let request = read_content(&mut fields, findings);
    fields.finish(findings);
    Ok((template, request))
}
