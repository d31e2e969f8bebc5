//! Sets and lifts gates of the installation; begins and ends maintenance.

use crate::answer::Answer;
use crate::gates;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::Form;

pub(super) async fn suspend(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let request = gates::read_request(&fields).map_err(Problem::Invalid)?;
    visit.app().set_gate_as(&visit.requester, fields.text("scope"), request).await?;
    visit.state.queue.refresh().await?;
    Ok(see_other("/operator?done=gated"))
}

pub(super) async fn resume(form: Form) -> Answer {
    form.visit.app().lift_gate_as(&form.visit.requester, form.fields.text("scope")).await?;
    form.visit.state.queue.refresh().await?;
    Ok(see_other("/operator?done=lifted"))
}

/// Begins maintenance if the field `on` is filled; ends it otherwise.
pub(super) async fn set_maintenance(form: Form) -> Answer {
    let on = form.fields.is_ticked("on");
    form.visit.app().set_maintenance_as(&form.visit.requester, on).await?;
    Ok(see_other(if on { "/operator?done=closed" } else { "/operator?done=opened" }))
}
