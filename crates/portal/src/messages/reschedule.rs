//! Gives scheduled messages another time: one message, or all messages of a tag.

use postroad_app::access::Operation;
use postroad_model::{MessageId, Timestamp};
use postroad_store::{ScheduleChange, ScheduledOf};

use crate::answer::Answer;
use crate::path::Path;
use crate::problem::{Problem, sentences};
use crate::redirect::see_other;
use crate::visit::Form;

/// Maximum number of messages that one form reschedules.
const MESSAGES_MAX: usize = 10_000;

pub(super) async fn submit(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::SendReschedule).await?;
    let change = ScheduleChange::MoveTo(send_at(&form)?);
    form.visit.app().change_schedule(&caller, MessageId(id), change).await?;
    Ok(see_other(&format!("/servers/{server}/messages/{id}?done=saved")))
}

/// Moves all scheduled messages of a tag.
pub(super) async fn submit_tag(Path(server): Path<i64>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::SendReschedule).await?;
    let tag = form.fields.filled("tag").ok_or_else(|| Problem::Invalid("Name a tag.".to_owned()))?;
    let (of, change) = (ScheduledOf::Tag(tag.to_owned()), ScheduleChange::MoveTo(send_at(&form)?));
    let _permit = form.visit.state.work.schedule_change(form.visit.person.user.account_id).await?;
    let changed = form.visit.app().change_schedules(&caller, of, change, None, MESSAGES_MAX).await?;
    if changed.matched == 0 {
        return Err(Problem::Invalid(format!(
            "No message with the tag {tag} can be rescheduled: there is none, or all have this time already. Nothing was changed."
        )));
    }
    let done = if changed.next.is_some() { "rescheduled-some" } else { "rescheduled" };
    Ok(see_other(&format!("/servers/{server}/messages?tab=scheduled&done={done}")))
}

/// The page's script sends `send_at`, converted from the reader's time zone. Without JavaScript the form sends
/// `send_at_utc`.
fn send_at(form: &Form) -> Result<Timestamp, Problem> {
    let text = match form.fields.filled("send_at") {
        Some(text) => text.to_owned(),
        None => format!("{}:00Z", form.fields.text("send_at_utc")),
    };
    let send_at = form.visit.app().parse_send_at(&text);
    send_at.map_err(|problem| Problem::Invalid(sentences(&[problem])))
}
