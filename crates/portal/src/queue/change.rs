//! Stops, slows and resumes the sending of a server; its keys keep working.

use axum::http::StatusCode;
use postroad_model::ServerId;

use super::show::list;
use crate::answer::Answer;
use crate::gates;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::Form;

pub(super) async fn suspend(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let done = match gates::read(&fields) {
        Ok(request) => {
            let done = visit.app().suspend_queue_as(&visit.by, ServerId(server), request).await;
            done.map_err(Problem::from)
        }
        Err(text) => Err(Problem::Invalid(text)),
    };
    match done {
        Ok(()) => {
            visit.state.queue.refresh().await?;
            Ok(see_other(&format!("/servers/{server}/queue?done=gated")))
        }
        Err(problem) => {
            list(&visit, server, StatusCode::UNPROCESSABLE_ENTITY, Some(problem.into_form_text()?)).await
        }
    }
}

pub(super) async fn resume(Path(server): Path<i64>, form: Form) -> Answer {
    form.visit.app().resume_queue_as(&form.visit.by, ServerId(server)).await?;
    form.visit.state.queue.refresh().await?;
    Ok(see_other(&format!("/servers/{server}/queue?done=lifted")))
}
