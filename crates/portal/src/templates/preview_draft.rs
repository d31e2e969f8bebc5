//! Preview of the unsaved texts in the template editor, for its sandboxed frame.

use super::check::validate;
use super::preview::escaped;
use super::save::read_draft;
use crate::answer::Answer;
use crate::messages::sandboxed;
use crate::path::Path;
use crate::visit::Form;

pub(super) async fn show_new_draft(Path(server): Path<i64>, form: Form) -> Answer {
    show(server, None, &form).await
}

pub(super) async fn show_draft(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    show(server, Some(id), &form).await
}

/// Renders the texts in the editor without saving them: with the sample model in the form, or else with a suggested
/// one.
async fn show(server: i64, id: Option<i64>, form: &Form) -> Answer {
    let found = match validate(&form.visit, server, id, &read_draft(&form.fields)).await {
        Ok(found) => found,
        Err(problem) => return Ok(sandboxed(&format!("<p>{}</p>", escaped(&problem.into_form_text()?)))),
    };
    let Some(rendered) = found.rendered else {
        let problems = found.problems.iter().map(|problem| {
            format!(
                "<li>{}, line {}: {}</li>",
                escaped(&problem.part),
                problem.line,
                escaped(&problem.message)
            )
        });
        let problems = problems.collect::<Vec<_>>().concat();
        return Ok(sandboxed(&format!("<p>The template cannot be rendered.</p><ul>{problems}</ul>")));
    };
    let body = rendered.html_body.unwrap_or_else(|| {
        format!("<pre>{}</pre>", escaped(rendered.plain_body.as_deref().unwrap_or_default()))
    });
    Ok(sandboxed(&body))
}
