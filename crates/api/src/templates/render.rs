//! templates/render: the texts of a mail, without sending it.

use std::borrow::Cow;

use crate::documented::ToSchema;
use postroad_app::templates::RenderRequest;
use postroad_openapi_macros::request_fields;
use serde::Serialize;

use super::model::read_model;
use super::shared_params::{read_loose_integer, read_template};
use crate::endpoint::Call;
use crate::envelope::{Flags, Success};
use crate::failure::Failure;
use crate::fields::{Fields, Findings};
use crate::json;

/// The template, by `id` or `alias`, and its model.
#[request_fields]
#[schema(example = json!({"alias": "welcome", "model": {"name": "Ann"}}))]
pub(crate) struct RenderTemplateIn {
    /// Id of the template, an integer; or give its `alias`.
    id: Option<i64>,
    /// Alias of the template, if there is no `id`.
    alias: Option<String>,
    /// The published version if left out, or the newest if none is published.
    version: Option<i64>,
    /// Values of the template's variables, at most 1 MiB of JSON.
    #[schema(value_type = Option<Object>)]
    model: Option<serde_json::Value>,
    /// Language tag such as `de-AT`.
    locale: Option<String>,
}

/// The texts of a mail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RenderedTemplateOut {
    subject: Option<String>,
    html_body: Option<String>,
    plain_body: Option<String>,
    /// The rendered version.
    version: i64,
}

/// Render a template
///
/// If the model lacks a variable, the error TemplateVariableMissing has its name, its line and the most similar name in
/// the model.
#[crate::documented::path(
    post,
    path = "/api/v1/templates/render",
    tag = "templates",
    operation_id = "renderTemplate",
    request_body = RenderTemplateIn,
    responses((status = 200, body = crate::documented::Answer<RenderedTemplateOut>)),
)]
pub(crate) async fn handle(call: Call) -> Result<Success<RenderedTemplateOut>, Failure> {
    let mut findings = Findings::default();
    let request = read(&call.body, &mut findings)?;
    let warnings = findings.reject_problems()?;
    let rendered = call.app.render_template(&call.caller, request).await;
    let (_, version, texts) =
        rendered.map_err(|refusal| Failure::from(refusal).with_warnings(warnings.clone()))?;
    let all = [&texts.subject, &texts.html_body, &texts.plain_body];
    let bytes = 2 * all.into_iter().flatten().map(String::len).sum::<usize>() + 1_024;
    let memory = call.reserve_answer(bytes).await?.into();
    let data = RenderedTemplateOut {
        subject: texts.subject,
        html_body: texts.html_body,
        plain_body: texts.plain_body,
        version,
    };
    Ok(Success { data, flags: Flags { warnings, ..Flags::default() }, memory })
}

/// Parses the request; `RenderTemplateIn` documents its fields.
pub(crate) fn read(text: &[u8], findings: &mut Findings) -> Result<RenderRequest, Failure> {
    let mut fields = Fields::of_request(json::parse_object(text)?);
    let request = RenderRequest {
        template: read_template(&mut fields, findings),
        version: read_loose_integer(&mut fields, "version", findings),
        model: read_model(&mut fields, "model", findings).unwrap_or_default(),
        locale: fields.text("locale", findings).map(Cow::into_owned),
    };
    fields.finish(findings);
    Ok(request)
}
