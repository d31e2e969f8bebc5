//! Invites, changes, signs out and removes people.

use postroad_app::users::{InvitationRequest, UserChangeRequest};
use postroad_model::{AccountId, InvitationId, LimitedObject, UserId, UserRole};

use super::list::list;
use super::own_account;
use crate::answer::Answer;
use crate::fields::Fields;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::viewed_account::ViewedAccount;
use crate::visit::Form;

fn read_role(fields: &Fields) -> Result<UserRole, Problem> {
    UserRole::parse(fields.text("role")).ok_or_else(|| Problem::Invalid("Choose a role.".to_owned()))
}

/// Path of the list that a form was sent from; the field `account` names a customer.
fn list_path(fields: &Fields, done: &str) -> String {
    match fields.number("account") {
        Some(account) => format!("/operator/accounts/{account}/people?done={done}"),
        None => format!("/account/people?done={done}"),
    }
}

pub(super) async fn invite(form: Form) -> Answer {
    let account = own_account(&form.visit);
    invite_to(account, form).await
}

pub(super) async fn invite_to_customer(Path(account): Path<i64>, form: Form) -> Answer {
    let account = ViewedAccount::of_customer(&form.visit, account).await?;
    invite_to(account, form).await
}

/// Invites a person. The operator sees the link, to pass it on by hand if no mail can be sent.
async fn invite_to(account: ViewedAccount, form: Form) -> Answer {
    let Form { mut visit, fields } = form;
    let request = InvitationRequest {
        account: Some(account.id),
        email: fields.text("email").to_owned(),
        role: read_role(&fields)?,
        operator: fields.is_ticked("operator"),
        mail: fields.is_ticked("mail") || !visit.requester.actor.is_operator(),
        idempotency_key: None,
    };
    match visit.app().invite_user(&visit.requester, request).await {
        Ok(invited) => match invited.value.link {
            Some(link) => {
                visit.warning = visit.app().ceiling_warning(account.id, LimitedObject::Users).await;
                list(&visit, account, Some(link)).await
            }
            None => Ok(see_other(&format!("{}/people?done=invited&ceiling=users", account.base))),
        },
        Err(refusal) => Err(refusal.into()),
    }
}

pub(super) async fn change_role(Path(person): Path<i64>, form: Form) -> Answer {
    let change = UserChangeRequest { role: Some(read_role(&form.fields)?), ..UserChangeRequest::default() };
    form.visit.app().update_user(&form.visit.requester, UserId(person), change).await?;
    Ok(see_other(&list_path(&form.fields, "saved")))
}

pub(super) async fn remove(Path(person): Path<i64>, form: Form) -> Answer {
    form.visit.app().remove_user(&form.visit.requester, UserId(person)).await?;
    Ok(see_other(&list_path(&form.fields, "removed")))
}

/// Ends all sessions of a person.
pub(super) async fn sign_out(Path(person): Path<i64>, form: Form) -> Answer {
    form.visit.app().revoke_sessions_of(&form.visit.requester, UserId(person), None).await?;
    Ok(see_other(&list_path(&form.fields, "ended")))
}

pub(super) async fn uninvite(form: Form) -> Answer {
    let id = form.fields.number("id").ok_or(Problem::NotFound)?;
    let own_id = form.visit.person.user.account_id;
    let account = form.fields.number("account").map_or(own_id, AccountId);
    form.visit.app().uninvite_user(&form.visit.requester, Some(account), InvitationId(id)).await?;
    Ok(see_other(&list_path(&form.fields, "removed")))
}
