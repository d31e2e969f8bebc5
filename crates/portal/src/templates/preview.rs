//! The rendered mail: its HTML for the sandboxed frame of the editor, its subject and text for the page around it. All
//! are rendered with the version's sample model, or with the model of the query.

use postroad_app::Caller;
use postroad_app::access::Operation;
use postroad_app::templates::{Model, RenderRequest, RenderedTemplate};
use postroad_model::TemplateId;
use postroad_store::TemplateRef;

use crate::answer::Answer;
use crate::fields::Fields;
use crate::messages::sandboxed;
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::Visit;

pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::TemplatesRender).await?;
    match render(&visit, &caller, id).await {
        Ok(rendered) => Ok(sandboxed(&rendered.html_body.unwrap_or_default())),
        Err(refusal) => {
            let text = refusal.into_form_text()?;
            Ok(sandboxed(&format!("<p>{}</p>", escaped(&text))))
        }
    }
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Renders the version with the language and model that the query names.
pub(super) async fn render(visit: &Visit, caller: &Caller, id: i64) -> Result<RenderedTemplate, Problem> {
    let template = TemplateRef::Id(TemplateId(id));
    let found = visit.app().find_template(caller, template.clone(), visit.query.number("version")).await?;
    let model = read_model(&visit.query)?;
    let request = RenderRequest {
        template,
        version: Some(found.version.info.version),
        model: model.or(found.version.content.sample_model).unwrap_or_default(),
        locale: visit.query.filled("locale").map(ToOwned::to_owned),
    };
    let (_, _, rendered) = visit.app().render_template(caller, request).await?;
    Ok(rendered)
}

/// Reads the field `model`; `None` if it is empty.
pub(super) fn read_model(fields: &Fields) -> Result<Option<Model>, Problem> {
    let Some(text) = fields.filled("model") else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|error| {
        Problem::Invalid(format!("The model is not a JSON object: line {}, {error}.", error.line()))
    })
}
