//! Page that waits for the first message of a server, or sends one, and then shows its timeline.

use askama::Template;
use axum::http::StatusCode;
use postroad_app::SearchRequest;
use postroad_app::access::Operation;
use postroad_app::send::{ListEntry, MessageDraft, SendContext};

use crate::answer::{Answer, page_with};
use crate::domains::find_verified_domain;
use crate::layout::{Layout, Section};
use crate::messages::newest_rows::NewestRows;
use crate::messages::{TimelineRow, rows};
use crate::once;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::shown::StatusBadge;
use crate::visit::{Form, Visit};

const SUBJECT: &str = "A first message from Postroad";
const TEXT: &str = "Hello,\n\nthis message was sent from the portal. If you can read it, sending works.\n";

/// The newest message of the server.
pub(crate) struct Arrival {
    pub(crate) id: i64,
    pub(crate) to: String,
    pub(crate) subject: String,
    pub(crate) status: StatusBadge,
}

#[derive(Template)]
#[template(path = "servers/first_message.html")]
struct FirstMessagePage {
    layout: Layout,
    server: i64,
    arrival: Option<Arrival>,
    timeline: NewestRows<TimelineRow>,
    /// The fields of the form.
    from: String,
    to: String,
    problem: Option<String>,
    once: String,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::DomainsList).await?;
    let verified = find_verified_domain(&visit, &caller).await?;
    let from = verified.map(|name| format!("hello@{name}")).unwrap_or_default();
    let to = visit.person.user.email.clone();
    page_of(&visit, server, from, to, None).await
}

/// Sends one message, as a program would.
pub(super) async fn send(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let caller = visit.caller(server, Operation::SendMessage).await?;
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
        Ok(_) => Ok(see_other(&format!("/servers/{server}/first_message"))),
        Err(refusal) => {
            let text = Problem::from(refusal).into_form_text()?;
            let (from, to) = (fields.text("from").to_owned(), fields.text("to").to_owned());
            page_of(&visit, server, from, to, Some(text)).await
        }
    }
}

async fn page_of(visit: &Visit, server: i64, from: String, to: String, problem: Option<String>) -> Answer {
    let caller = visit.caller(server, Operation::MessagesTimeline).await?;
    let (_, layout) = visit.server_layout(server, "First message", Section::Overview).await?;
    let filter = SearchRequest::default()
        .filter()
        .map_err(|_| Problem::Internal("the empty search is invalid".to_owned()))?;
    let newest = visit.app().search_messages(&caller, filter, None, 1).await?.items.pop();
    let (mut arrival, mut timeline) = (None, NewestRows::default());
    if let Some(item) = newest {
        timeline = rows(visit.app().message_timeline(caller.server_id, item.id).await?.items, 0);
        arrival = Some(Arrival {
            id: item.id.0,
            to: item.rcpt_to,
            subject: item.subject,
            status: StatusBadge(item.status),
        });
    }
    let status = if problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let once = once::new_once();
    page_with(status, &FirstMessagePage { layout, server, arrival, timeline, from, to, problem, once })
}
