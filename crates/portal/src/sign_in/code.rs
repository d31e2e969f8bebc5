//! The second step of signing in: a code of the authenticator app.

use super::form::{Field, FormPage, OpenRequest};
use crate::answer::Answer;
use crate::problem::Problem;

pub(super) async fn submit(request: OpenRequest) -> Answer {
    let (token, next) = (request.fields.text("token"), request.fields.text("next"));
    match request.app().sign_in_with_code(token, request.fields.text("code"), &request.visitor).await {
        Ok(session) => Ok(request.begin_session(&session, next)),
        Err(refusal) => form(token, next, Some(Problem::from(refusal).into_form_text()?)),
    }
}

pub(super) fn form(token: &str, next: &str, problem: Option<String>) -> Answer {
    let code = Field {
        name: "code",
        label: "Code",
        kind: "text",
        value: String::new(),
        autocomplete: "one-time-code",
        hint: "Six digits of the app, or one of your recovery codes.",
    };
    let page = FormPage {
        title: "Enter the code of your app",
        text: String::new(),
        developer: None,
        action: "/sign_in/code",
        fields: vec![code],
        hidden: vec![("token", token.to_owned()), ("next", next.to_owned())],
        check_box: None,
        button: "Go on",
        problem,
        notice: None,
        link: Some(("/sign_in", "Start again")),
    };
    page.show()
}
