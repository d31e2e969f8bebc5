//! Checks the texts in the editor without saving them, with the model in the form.

use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_app::templates::{TemplateFields, Validation};
use postroad_model::TemplateId;
use postroad_store::TemplateRef;

use super::editor::{CheckResult, Draft, Outcome, page_of};
use super::save::{mistake, read_draft, template_fields};
use crate::answer::Answer;
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::{Form, Visit};

pub(super) async fn submit_new(Path(server): Path<i64>, form: Form) -> Answer {
    check(server, None, form).await
}

pub(super) async fn submit(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    check(server, Some(id), form).await
}

/// Checks the texts of the form with the form's model.
pub(super) async fn validate(
    visit: &Visit,
    server: i64,
    id: Option<i64>,
    draft: &Draft,
) -> Result<Validation, Problem> {
    let caller = visit.caller(server, Operation::TemplatesValidate).await?;
    let request = template_fields(draft).map_err(Problem::Invalid)?;
    // The kind of a template that exists does not change.
    let kind = id.is_none().then(|| if draft.is_layout { "layout" } else { "standard" }.to_owned());
    let template = id.map(|id| TemplateRef::Id(TemplateId(id)));
    Ok(visit.app().validate_template(&caller, template, TemplateFields { kind, ..request }).await?)
}

async fn check(server: i64, id: Option<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let draft = read_draft(&fields);
    let found = match validate(&visit, server, id, &draft).await {
        Ok(found) => found,
        Err(problem) => {
            let text = problem.into_form_text()?;
            return page_of(&visit, server, draft, id, Outcome::problem(text)).await;
        }
    };
    let mistakes: Vec<_> = found.problems.into_iter().map(|problem| mistake(problem, &draft)).collect();
    let status = if mistakes.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let checked = CheckResult {
        variables: found.variables,
        suggested_model: serde_json::to_string_pretty(&found.suggested_model).unwrap_or_default(),
    };
    let outcome = Outcome { status, mistakes, checked: Some(checked), ..Outcome::default() };
    page_of(&visit, server, draft, id, outcome).await
}
