//! Creates the first person of an installation, with the link that `postroad serve` or an admin command prints.

use super::form::{Field, FormPage, OpenRequest};
use crate::answer::Answer;
use crate::problem::Problem;

pub(super) async fn show(request: OpenRequest) -> Answer {
    let token = request.query.text("token");
    request.app().check_set_up_link(token).await?;
    form(&request, token, "", "", None)
}

pub(super) async fn submit(request: OpenRequest) -> Answer {
    let fields = &request.fields;
    let (token, account, email) = (fields.text("token"), fields.text("account"), fields.text("email"));
    match request.app().set_up(token, account, email, fields.raw("password"), &request.visitor).await {
        Ok(session) => Ok(request.begin_session(&session, request.first_page("/servers"))),
        Err(refusal) => form(&request, token, account, email, Some(Problem::from(refusal).into_form_text()?)),
    }
}

fn form(request: &OpenRequest, token: &str, account: &str, email: &str, problem: Option<String>) -> Answer {
    let account = Field {
        name: "account",
        label: "Organisation",
        kind: "text",
        value: account.to_owned(),
        autocomplete: "organization",
        hint: "The account that owns your servers and domains.",
    };
    let email = Field {
        name: "email",
        label: "Your e-mail address",
        kind: "email",
        value: email.to_owned(),
        autocomplete: "username",
        hint: "",
    };
    let page = FormPage {
        title: "Set up Postroad",
        text: "You become the owner of the first account and the operator of this installation.".to_owned(),
        developer: None,
        action: "/set_up",
        fields: vec![account, email, new_password()],
        hidden: vec![("token", token.to_owned())],
        check_box: Some(request.app_check_box()),
        button: "Create account",
        problem,
        notice: None,
        link: None,
    };
    page.show()
}

pub(super) fn new_password() -> Field {
    Field {
        name: "password",
        label: "Password",
        kind: "password",
        value: String::new(),
        autocomplete: "new-password",
        hint: "Best: a few words whose combination only you would think of.",
    }
}
