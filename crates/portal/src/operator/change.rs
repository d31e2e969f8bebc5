//! Sets and lifts gates of the installation.

use axum::http::StatusCode;

use super::show::overview;
use crate::answer::Answer;
use crate::gates;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::Form;

pub(super) async fn suspend(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let done = match gates::read(&fields) {
        Ok(request) => {
            let done = visit.app().close_gate(&visit.by, fields.text("scope"), request).await;
            done.map_err(Problem::from)
        }
        Err(text) => Err(Problem::Invalid(text)),
    };
    match done {
        Ok(()) => {
            visit.state.queue.refresh().await?;
            Ok(see_other("/operator?done=gated"))
        }
        Err(problem) => {
            overview(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some(problem.into_form_text()?)).await
        }
    }
}

pub(super) async fn resume(form: Form) -> Answer {
    form.visit.app().open_gate(&form.visit.by, form.fields.text("scope")).await?;
    form.visit.state.queue.refresh().await?;
    Ok(see_other("/operator?done=lifted"))
}
