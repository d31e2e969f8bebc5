//! Stops, slows and resumes the sending of a server; its keys keep working.

use postroad_model::ServerId;

use crate::answer::Answer;
use crate::gates;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::Form;

pub(super) async fn suspend(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let request = gates::read_request(&fields).map_err(Problem::Invalid)?;
    visit.app().suspend_queue_as(&visit.requester, ServerId(server), request).await?;
    visit.state.queue.refresh().await?;
    Ok(see_other(&format!("/servers/{server}/queue?done=gated")))
}

pub(super) async fn resume(Path(server): Path<i64>, form: Form) -> Answer {
    form.visit.app().resume_queue_as(&form.visit.requester, ServerId(server)).await?;
    form.visit.state.queue.refresh().await?;
    Ok(see_other(&format!("/servers/{server}/queue?done=lifted")))
}
