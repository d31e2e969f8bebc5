//! templates/diff: differences of a mail between two versions.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_app::templates::{Model, TextDiff};
use postroad_openapi_macros::request_fields;
use postroad_store::TemplateRef;
use serde::Serialize;

use super::model::read_model;
use super::shared_params::{read_loose_integer, read_template};
use crate::endpoint::Call;
use crate::envelope::{Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The template, by `id` or `alias`, and two versions.
#[request_fields]
#[schema(example = json!({"alias": "welcome", "from": 1, "to": 2}))]
pub(crate) struct DiffTemplateIn {
    /// Id of the template, an integer; or give its `alias`.
    id: Option<i64>,
    /// Alias of the template, if there is no `id`.
    alias: Option<String>,
    /// The old version; the published one if left out.
    from: Option<i64>,
    /// The new version; the newest if left out.
    to: Option<i64>,
    /// Model for rendering both; if left out, the sample model of `to`, or else the `suggested_model` of
    /// templates/validate.
    #[schema(value_type = Option<Object>)]
    model: Option<serde_json::Value>,
    /// Language tag such as `de-AT`.
    locale: Option<String>,
}

/// Two versions of a mail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateDiffOut {
    from: i64,
    to: i64,
    /// The model used for both.
    #[schema(value_type = Object)]
    model: Model,
    /// Whether anything changed.
    changed: bool,
    parts: Vec<TextDiffOut>,
}

/// One text before and after.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TextDiffOut {
    /// `subject`, `html_body` or `plain_body`.
    part: &'static str,
    changed: bool,
    from: Option<String>,
    to: Option<String>,
    /// In the format of `diff -u`; empty if nothing changed.
    diff: String,
}

/// Parsed request.
#[derive(Debug)]
pub(crate) struct DiffRequest {
    template: TemplateRef,
    versions: (Option<i64>, Option<i64>),
    model: Option<Model>,
    locale: Option<String>,
}

/// Compare two versions of a template
///
/// Both are rendered with the same model, so that the answer shows the changes in a customer's mail.
#[crate::documented::path(
    post,
    path = "/api/v1/templates/diff",
    tag = "templates",
    operation_id = "diffTemplate",
    request_body = DiffTemplateIn,
    responses((status = 200, body = crate::documented::Answer<TemplateDiffOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<TemplateDiffOut>, Failure> {
    let mut findings = Findings::default();
    let DiffRequest { template, versions, model, locale } = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let found = call.app.diff_template(&call.caller, template, versions, model, locale).await;
    let found = found.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    let parts: Vec<TextDiffOut> = found.parts.into_iter().map(TextDiffOut::from).collect();
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let bytes: usize = parts.iter().map(|part| length(&part.from) + length(&part.to) + part.diff.len()).sum();
    let memory = call.reserve_answer(2 * bytes + 4_096).await?.into();
    let changed = parts.iter().any(|part| part.changed);
    let data = TemplateDiffOut { from: found.from, to: found.to, model: found.model, changed, parts };
    Ok(Success { data, flags: Flags { warnings, ..Flags::default() }, memory })
}

impl From<TextDiff> for TextDiffOut {
    fn from(text: TextDiff) -> Self {
        let TextDiff { part, from, to, diff } = text;
        Self { part, changed: from != to, from, to, diff }
    }
}

/// Parses the request; `DiffTemplateIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<DiffRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let template = read_template(&mut fields, findings);
    let from = read_loose_integer(&mut fields, "from", findings);
    let to = read_loose_integer(&mut fields, "to", findings);
    let model = read_model(&mut fields, "model", findings);
    let locale = fields.text("locale", findings).map(Cow::into_owned);
    fields.finish(findings);
    Ok(DiffRequest { template, versions: (from, to), model, locale })
}
