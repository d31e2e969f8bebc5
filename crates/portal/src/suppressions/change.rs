//! Adds and removes suppressed addresses.

use axum::extract::Path;
use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_app::suppressions::SuppressionRequest;

use super::list::list;
use crate::answer::Answer;
use crate::problem::{Problem, sentences};
use crate::redirect::see_other;
use crate::visit::Form;

pub(super) async fn add(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let caller = visit.caller(server, Operation::SuppressionsAdd).await?;
    let request = SuppressionRequest {
        address: fields.text("address").to_owned(),
        details: fields.filled("details").map(ToOwned::to_owned),
        ..SuppressionRequest::default()
    };
    let added = visit.app().add_suppressions(&caller.requester(), caller.server_id, &[request]).await?;
    match added.into_iter().next() {
        Some(Err(problems)) => {
            list(&visit, server, StatusCode::UNPROCESSABLE_ENTITY, Some(sentences(&problems))).await
        }
        _ => Ok(see_other(&format!("/servers/{server}/suppressions?done=created"))),
    }
}

pub(super) async fn remove(Path(server): Path<i64>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::SuppressionsRemove).await?;
    let address = form.fields.text("address").to_owned();
    let removed =
        form.visit.app().remove_suppressions(&caller.requester(), caller.server_id, &[address]).await?;
    match removed.into_iter().next() {
        Some(Err(problem)) => Err(Problem::Invalid(format!("{}.", problem.message))),
        _ => Ok(see_other(&format!("/servers/{server}/suppressions?done=removed"))),
    }
}
