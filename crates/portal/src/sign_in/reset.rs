//! A forgotten password: a link by mail, and the form it leads to.

use super::form::{Field, FormPage, OpenRequest};
use super::set_up::new_password;
use crate::answer::Answer;
use crate::problem::Problem;
use crate::redirect::see_other;

pub(super) async fn show(request: OpenRequest) -> Answer {
    let token = request.query.text("token");
    if token.is_empty() {
        return ask_for_address(None, request.query.text("done") == "sent");
    }
    request.app().check_reset_link(token).await?;
    choose_password(token, None)
}

pub(super) async fn submit(request: OpenRequest) -> Answer {
    let token = request.fields.text("token");
    if token.is_empty() {
        // The answer is the same whether or not the person exists.
        return match request
            .app()
            .request_password_reset(request.fields.text("email"), &request.visitor)
            .await
        {
            Ok(()) => Ok(see_other("/reset_password?done=sent")),
            Err(refusal) => ask_for_address(Some(Problem::from(refusal).into_form_text()?), false),
        };
    }
    match request.app().reset_password(token, request.fields.raw("password"), &request.visitor).await {
        Ok(Some(session)) => Ok(request.begin_session(&session, "/")),
        // A person with an authenticator app has to sign in with a code: no session begins here.
        Ok(None) => Ok(see_other("/sign_in?done=saved")),
        Err(refusal) => choose_password(token, Some(Problem::from(refusal).into_form_text()?)),
    }
}

fn ask_for_address(problem: Option<String>, is_sent: bool) -> Answer {
    let email = Field {
        name: "email",
        label: "E-mail address",
        kind: "email",
        value: String::new(),
        autocomplete: "username",
        hint: "",
    };
    let page = FormPage {
        title: "New password",
        text: "A link comes by mail if somebody with this address signs in here.".to_owned(),
        developer: None,
        action: "/reset_password",
        fields: vec![email],
        hidden: Vec::new(),
        check_box: None,
        button: "Send link",
        problem,
        notice: is_sent.then_some("If somebody with this address signs in here, a link is on its way."),
        link: Some(("/sign_in", "Back to signing in")),
    };
    page.show()
}

fn choose_password(token: &str, problem: Option<String>) -> Answer {
    let page = FormPage {
        title: "Choose a new password",
        text: "Your other sessions end.".to_owned(),
        developer: None,
        action: "/reset_password",
        fields: vec![new_password()],
        hidden: vec![("token", token.to_owned())],
        check_box: None,
        button: "Save and sign in",
        problem,
        notice: None,
        link: Some(("/sign_in", "Back to signing in")),
    };
    page.show()
}
