//! An invitation to an account.

use super::form::{Field, FormPage, OpenRequest};
use super::set_up::new_password;
use crate::answer::Answer;
use crate::problem::Problem;

pub(super) async fn show(request: OpenRequest) -> Answer {
    form(&request, request.query.text("token"), "", None).await
}

pub(super) async fn submit(request: OpenRequest) -> Answer {
    let fields = &request.fields;
    let (token, name) = (fields.text("token"), fields.text("name"));
    match request.app().accept_invitation(token, name, fields.raw("password"), &request.visitor).await {
        Ok(session) => Ok(request.begin_session(&session, request.first_page("/"))),
        Err(refusal) => form(&request, token, name, Some(Problem::from(refusal).into_form_text()?)).await,
    }
}

async fn form(request: &OpenRequest, token: &str, name: &str, problem: Option<String>) -> Answer {
    let invitation = request.app().find_invitation(token).await?;
    let name = Field {
        name: "name",
        label: "Your name",
        kind: "text",
        value: name.to_owned(),
        autocomplete: "name",
        hint: "",
    };
    let page = FormPage {
        title: "Accept the invitation",
        text: format!("{} invites {} as {}.", invitation.account_name, invitation.email, invitation.role),
        developer: None,
        action: "/invitation",
        fields: vec![name, new_password()],
        hidden: vec![("token", token.to_owned())],
        check_box: Some(request.app_check_box()),
        button: "Join",
        problem,
        notice: None,
        link: Some(("/sign_in", "Sign in instead")),
    };
    page.show()
}
