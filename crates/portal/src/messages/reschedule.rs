//! Gives a scheduled message another time.

use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_model::MessageId;
use postroad_store::ScheduleChange;

use crate::answer::Answer;
use crate::problem::{Problem, sentences};
use crate::redirect::see_other;
use crate::visit::Form;

/// The script sends `send_at`, from the reader's time zone; without it the field of the form is in UTC.
pub(super) async fn submit(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::SendReschedule).await?;
    let text = match form.fields.filled("send_at") {
        Some(text) => text.to_owned(),
        None => format!("{}:00Z", form.fields.text("send_at_utc")),
    };
    let send_at = form.visit.app().parse_send_at(&text);
    let send_at = send_at.map_err(|problem| Problem::Invalid(sentences(&[problem])))?;
    form.visit.app().change_schedule(&caller, MessageId(id), ScheduleChange::MoveTo(send_at)).await?;
    Ok(see_other(&format!("/servers/{server}/messages/{id}?done=saved")))
}
