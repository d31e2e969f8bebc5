//! Changes of a person's own sign-in.

use postroad_app::users::UserRefusal;
use postroad_model::UserSessionId;

use super::show::{Outcome, page_of};
use crate::answer::Answer;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

const SAVED: &str = "/account/you?done=saved";

async fn answer_change<T>(visit: &Visit, result: Result<T, UserRefusal>) -> Answer {
    match result {
        Ok(_) => Ok(see_other(SAVED)),
        Err(refusal) => show_refused(visit, refusal).await,
    }
}

async fn show_refused(visit: &Visit, refusal: UserRefusal) -> Answer {
    let problem = Some(Problem::from(refusal).into_form_text()?);
    page_of(visit, Outcome { problem, ..Outcome::default() }).await
}

pub(super) async fn rename(form: Form) -> Answer {
    let visit = &form.visit;
    answer_change(visit, visit.app().rename_self(&visit.person, form.fields.text("name")).await).await
}

pub(super) async fn change_password(form: Form) -> Answer {
    let (visit, fields) = (&form.visit, &form.fields);
    let changed = visit.app().change_password(&visit.person, fields.raw("old"), fields.raw("new")).await;
    answer_change(visit, changed).await
}

pub(super) async fn propose_app(form: Form) -> Answer {
    let visit = &form.visit;
    match visit.app().propose_totp(&visit.person).await {
        Ok(proposed) => page_of(visit, Outcome { proposed: Some(proposed), ..Outcome::default() }).await,
        Err(refusal) => show_refused(visit, refusal).await,
    }
}

pub(super) async fn enable_app(form: Form) -> Answer {
    let visit = &form.visit;
    match visit.app().enable_totp(&visit.person, form.fields.text("code")).await {
        Ok(codes) => page_of(visit, Outcome { codes, ..Outcome::default() }).await,
        Err(refusal) => show_refused(visit, refusal).await,
    }
}

pub(super) async fn disable_app(form: Form) -> Answer {
    let visit = &form.visit;
    answer_change(visit, visit.app().disable_totp(&visit.person, form.fields.text("code")).await).await
}

/// Ends the session that the field `id` names; without that field, all sessions except the current one.
pub(super) async fn end_session(form: Form) -> Answer {
    let visit = &form.visit;
    match form.fields.number("id") {
        Some(id) => {
            answer_change(visit, visit.app().revoke_own_session(&visit.person, UserSessionId(id)).await).await
        }
        None => answer_change(visit, visit.app().revoke_other_sessions(&visit.person).await).await,
    }
}
