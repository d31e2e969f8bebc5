//! Signing in with e-mail address and password, or by the link that `postroad dev` prints.

use postroad_app::users::{SignInOutcome, SignInRequest};

use super::code;
use super::form::{Developer, Field, FormPage, OpenRequest};
use crate::answer::Answer;
use crate::layout::notice;
use crate::problem::Problem;

/// Shown by `postroad dev`, where nobody has a password at first, to callers without the button that signs them in.
const DEV_LINK_TEXT: &str = "This is postroad dev: open the link that its terminal shows beside Portal. It signs you in without a password.";
/// Shown by `postroad dev` to callers on the same machine, who get a button that signs them in.
const DEV_BUTTON_TEXT: &str = "This is postroad dev on your machine. You need no password.";

pub(super) async fn show(request: OpenRequest) -> Answer {
    let token = request.query.text("token");
    if token.is_empty() {
        return form(&request, "", request.query.text("next"), None);
    }
    match request.app().sign_in_by_link(token, &request.visitor).await {
        Ok(session) => Ok(request.begin_session(&session, "/")),
        Err(refusal) => form(&request, "", "", Some(Problem::from(refusal).into_form_text()?)),
    }
}

pub(super) async fn submit(request: OpenRequest) -> Answer {
    let (email, next) = (request.fields.text("email"), request.fields.text("next"));
    let credentials =
        SignInRequest { email: email.to_owned(), password: request.fields.raw("password").to_owned() };
    match request.app().sign_in(credentials, &request.visitor).await {
        Ok(SignInOutcome::Done(session)) => Ok(request.begin_session(&session, next)),
        Ok(SignInOutcome::NeedsCode { token }) => code::form(&token, next, None),
        Err(refusal) => form(&request, email, next, Some(Problem::from(refusal).into_form_text()?)),
    }
}

fn form(request: &OpenRequest, email: &str, next: &str, problem: Option<String>) -> Answer {
    let email = Field {
        name: "email",
        label: "E-mail address",
        kind: "email",
        value: email.to_owned(),
        autocomplete: "username",
        hint: "",
    };
    let password = Field {
        name: "password",
        label: "Password",
        kind: "password",
        value: String::new(),
        autocomplete: "current-password",
        hint: "",
    };
    let has_dev_button = request.app().admits_developer(request.visitor.address);
    let has_inbox = request.state.inbox.is_some();
    let text = match (has_dev_button, request.app().is_dev()) {
        (true, _) => DEV_BUTTON_TEXT,
        (false, true) => DEV_LINK_TEXT,
        (false, false) => "",
    };
    let page = FormPage {
        title: "Sign in",
        text: text.to_owned(),
        developer: has_dev_button.then_some(Developer { has_inbox }),
        action: "/sign_in",
        fields: vec![email, password],
        hidden: vec![("next", next.to_owned())],
        check_box: None,
        button: "Sign in",
        problem,
        notice: notice(request.query.text("done")),
        link: Some(("/reset_password", "Forgot the password?")),
    };
    page.show()
}
