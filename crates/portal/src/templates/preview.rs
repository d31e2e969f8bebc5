//! The rendered HTML for the sandboxed frame of the editor, with the template's sample model.

use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_app::templates::RenderRequest;
use postroad_model::TemplateId;
use postroad_store::TemplateRef;

use crate::answer::Answer;
use crate::messages::sandboxed;
use crate::problem::Problem;
use crate::visit::Visit;

pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::TemplatesRender).await?;
    let template = TemplateRef::Id(TemplateId(id));
    let found = visit.app().find_template(&caller, template.clone(), visit.query.number("version")).await?;
    let request = RenderRequest {
        template,
        version: Some(found.version.info.version),
        model: found.version.content.sample_model.unwrap_or_default(),
        locale: visit.query.filled("locale").map(ToOwned::to_owned),
    };
    match visit.app().render_template(&caller, request).await {
        Ok((_, _, rendered)) => Ok(sandboxed(&rendered.html_body.unwrap_or_default())),
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            Ok(sandboxed(&format!("<p>{}</p>", text.replace('&', "&amp;").replace('<', "&lt;"))))
        }
    }
}
