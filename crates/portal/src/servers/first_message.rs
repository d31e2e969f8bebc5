//! Page that waits for the first message of a server, or sends one, and then shows its timeline.

use askama::Template;
use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_app::send::{ListEntry, MessageDraft, SendContext};

use super::arrival::{ArrivalPanel, AwaitedMessage};
use crate::answer::{Answer, page_with_status};
use crate::domains::find_verified_domain;
use crate::layout::{Layout, Section};
use crate::once;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

const SUBJECT: &str = "A first message from Postroad";
const TEXT: &str = "Hello,\n\nthis message was sent from the portal. If you can read it, sending works.\n";

#[derive(Template)]
#[template(path = "servers/first_message.html")]
struct FirstMessagePage {
    layout: Layout,
    server: i64,
    arrival: ArrivalPanel,
    since: i64,
    /// The fields of the form.
    from: String,
    to: String,
    problem: Option<String>,
    once: String,
}

/// Without `since` in the query, redirects to the page that waits for a message from now on. The URL of that page
/// has `since`, so reloading the page does not change the awaited message.
pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::MessagesSearch).await?;
    let Some(awaited) = AwaitedMessage::of_query(&visit) else {
        let awaited = AwaitedMessage::from_now(&visit, &caller, None).await?;
        return Ok(see_other(&awaited.page(server)));
    };
    let verified = find_verified_domain(&visit, &caller).await?;
    let from = verified.map(|name| format!("hello@{name}")).unwrap_or_default();
    let to = visit.person.user.email.clone();
    page_of(&visit, server, awaited, from, to, None).await
}

/// Sends one message, as a program would.
pub(super) async fn send(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let caller = visit.caller(server, Operation::SendMessage).await?;
    let awaited = match AwaitedMessage::after_id(fields.number("since")) {
        Some(awaited) => awaited,
        None => AwaitedMessage::from_now(&visit, &caller, None).await?,
    };
    let draft = MessageDraft {
        to: vec![ListEntry { pointer: "/to".to_owned(), text: fields.text("to").into() }],
        from: Some(fields.text("from").into()),
        subject: Some(SUBJECT.into()),
        plain_body: Some(TEXT.into()),
        tag: Some("first-message".into()),
        ..MessageDraft::default()
    };
    let idempotency = once::send_key(&fields, &[fields.text("from"), fields.text("to")]);
    let context = SendContext { caller, test: false, idempotency, warnings: Vec::new() };
    match visit.app().send_message(context, draft).await {
        Ok(_) => Ok(see_other(&awaited.page(server))),
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            let (from, to) = (fields.text("from").to_owned(), fields.text("to").to_owned());
            page_of(&visit, server, awaited, from, to, Some(text)).await
        }
    }
}

async fn page_of(
    visit: &Visit,
    server: i64,
    awaited: AwaitedMessage,
    from: String,
    to: String,
    problem: Option<String>,
) -> Answer {
    let (_, layout) = visit.server_layout(server, "First message", Section::Overview).await?;
    let arrival = ArrivalPanel::find(visit, server, awaited).await?;
    let status = if problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let (once, since) = (once::new_once(), awaited.since());
    page_with_status(status, &FirstMessagePage { layout, server, arrival, since, from, to, problem, once })
}
