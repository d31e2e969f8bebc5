//! Invites, changes and removes people.

use axum::extract::Path;
use axum::http::StatusCode;
use postroad_app::users::{InvitationRequest, PersonChangeRequest};
use postroad_model::{InvitationId, UserId, UserRole};

use super::list::list;
use crate::answer::Answer;
use crate::fields::Fields;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::Form;

const PEOPLE: &str = "/account/people";

fn read_role(fields: &Fields) -> Result<UserRole, Problem> {
    UserRole::parse(fields.text("role")).ok_or_else(|| Problem::Invalid("Choose a role.".to_owned()))
}

/// Shows the operator the link: where no mail can be sent, it is passed on by hand.
pub(super) async fn invite(form: Form) -> Answer {
    let Form { visit, fields } = form;
    let request = InvitationRequest {
        account: Some(visit.person.user.account_id),
        email: fields.text("email").to_owned(),
        role: read_role(&fields)?,
        operator: false,
        mail: fields.is_ticked("mail") || !visit.by.actor.is_operator(),
        key: None,
    };
    match visit.app().invite_user(&visit.by, request).await {
        Ok(invited) => match invited.value.link {
            Some(link) => list(&visit, StatusCode::OK, None, Some(link), "").await,
            None => Ok(see_other(&format!("{PEOPLE}?done=invited"))),
        },
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            list(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some(text), None, fields.text("email")).await
        }
    }
}

pub(super) async fn role(Path(person): Path<i64>, form: Form) -> Answer {
    let change =
        PersonChangeRequest { role: Some(read_role(&form.fields)?), ..PersonChangeRequest::default() };
    form.visit.app().update_user(&form.visit.by, UserId(person), change).await?;
    Ok(see_other(&format!("{PEOPLE}?done=saved")))
}

pub(super) async fn remove(Path(person): Path<i64>, form: Form) -> Answer {
    form.visit.app().remove_user(&form.visit.by, UserId(person)).await?;
    Ok(see_other(&format!("{PEOPLE}?done=removed")))
}

/// Ends all sessions of somebody.
pub(super) async fn sign_out(Path(person): Path<i64>, form: Form) -> Answer {
    form.visit.app().revoke_sessions_of(&form.visit.by, UserId(person), None).await?;
    Ok(see_other(&format!("{PEOPLE}?done=ended")))
}

pub(super) async fn uninvite(form: Form) -> Answer {
    let id = form.fields.number("id").ok_or(Problem::NotFound)?;
    let account = Some(form.visit.person.user.account_id);
    form.visit.app().uninvite_user(&form.visit.by, account, InvitationId(id)).await?;
    Ok(see_other(&format!("{PEOPLE}?done=removed")))
}
