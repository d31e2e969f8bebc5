//! Adds and removes suppressed addresses.

use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_app::suppressions::SuppressionRequest;
use postroad_model::Timestamp;

use super::list::list;
use crate::answer::Answer;
use crate::days;
use crate::fields::Fields;
use crate::path::Path;
use crate::problem::{Problem, sentences};
use crate::redirect::see_other;
use crate::refill::refill_answer;
use crate::visit::Form;

pub(super) async fn add(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let caller = visit.caller(server, Operation::SuppressionsAdd).await?;
    let text = |name: &str| fields.filled(name).map(ToOwned::to_owned);
    let request = SuppressionRequest {
        address: fields.text("address").to_owned(),
        reason: text("reason"),
        details: text("details"),
        // A text that is not a number becomes 0, which `app` refuses.
        origin_message_id: fields.filled("origin").map(|_| fields.number("origin").unwrap_or(0)),
        expires_at: end_of_last_day(&fields),
    };
    let added = visit.app().add_suppressions(&caller.requester(), caller.server_id, &[request]).await?;
    match added.into_iter().next() {
        Some(Err(problems)) => {
            let text = sentences(&problems);
            let page = list(&visit, server, StatusCode::UNPROCESSABLE_ENTITY, Some(text.clone())).await;
            refill_answer(page, &format!("/servers/{server}/suppressions"), &fields, &text).await
        }
        _ => Ok(see_other(&format!("/servers/{server}/suppressions?done=created"))),
    }
}

/// Reads the field `expires_at` as the end of that day. A text that is not a day is passed on, and `app` refuses it.
pub(super) fn end_of_last_day(fields: &Fields) -> Option<String> {
    let day = fields.filled("expires_at")?;
    Some(days::end(day).map_or_else(|| day.to_owned(), Timestamp::to_rfc3339))
}

/// Removes the address of the button (`only`), or the ticked addresses.
pub(super) async fn remove(Path(server): Path<i64>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::SuppressionsRemove).await?;
    let addresses: Vec<String> = match form.fields.filled("only") {
        Some(only) => vec![only.to_owned()],
        None => form.fields.all("address").map(|address| address.trim().to_owned()).collect(),
    };
    if addresses.is_empty() {
        return Err(Problem::Invalid("No address is ticked. Nothing was changed.".to_owned()));
    }
    let removed =
        form.visit.app().remove_suppressions(&caller.requester(), caller.server_id, &addresses).await?;
    match removed.into_iter().find_map(Result::err) {
        Some(problem) => Err(Problem::Invalid(sentences(&[problem]))),
        None => Ok(see_other(&format!("/servers/{server}/suppressions?done=removed"))),
    }
}
