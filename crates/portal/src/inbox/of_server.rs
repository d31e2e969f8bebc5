//! Inbox of a development server: the mail that it holds instead of delivering it.

use postroad_app::access::Operation;
use postroad_app::{MessageAction, SearchRequest};
use postroad_model::{DomainName, MessageId, ServerMode, Status};
use postroad_store::SearchItem;

use super::list::{ListPage, Row};
use super::one::{MessageSummary, message_page};
use crate::answer::{Answer, page};
use crate::display::{When, bytes};
use crate::domains::find_verified_domain;
use crate::layout::Section;
use crate::messages::content;
use crate::path::Path;
use crate::problem::{Problem, sentences};
use crate::query::query;
use crate::redirect::see_other;
use crate::snippets::first_command;
use crate::visit::{Form, Visit};

const PAGE_ROWS: usize = 100;

pub(super) async fn list(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::MessagesSearch).await?;
    let (_, layout) = visit.server_layout(server, "Inbox", Section::Inbox).await?;
    let q = visit.query.text("q");
    let before = visit.query.number("before").map(MessageId);
    let request = SearchRequest {
        q: Some(q.to_owned()).filter(|q| !q.is_empty()),
        statuses: vec![Status::Held],
        ..SearchRequest::default()
    };
    let is_live = caller.mode == ServerMode::Live;
    let (mut rows, mut next, mut problem) = (Vec::new(), None, None);
    match request.filter() {
        _ if is_live => {}
        Err(problems) => problem = Some(sentences(&problems)),
        Ok(filter) => {
            let found = visit.app().search_messages(&caller, filter, before, PAGE_ROWS).await?;
            rows = found.items.into_iter().map(|item| row(server, item)).collect();
            next = found.next.map(|next| query(&[("q", q), ("before", &next.to_string())]));
        }
    }
    let domain = find_verified_domain(&visit, &caller).await?;
    page(&ListPage {
        layout,
        base: format!("/servers/{server}/inbox"),
        live: format!("/servers/{server}/live"),
        about: "Mail that this development server accepted. It is held: nobody receives it unless you release it.",
        clear_operation: Operation::MessagesCancelHold.name(),
        question: "Delete all messages of the inbox, also those that the search does not show? They are cancelled for good.",
        rows,
        q: q.to_owned(),
        problem,
        next,
        first_command: first_command(
            &visit.base_url,
            &visit.person.user.email,
            domain.as_ref().map(DomainName::as_str),
        ),
        live_server: is_live.then_some(server),
    })
}

fn row(server: i64, item: SearchItem) -> Row {
    Row {
        path: format!("/servers/{server}/inbox/{}", item.id),
        to: item.rcpt_to,
        from: item.mail_from,
        subject: item.subject,
        size: bytes(item.size),
        at: When(item.created_at),
    }
}

pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let record = content::record(&visit, server, id).await?;
    let parsed = content::view(&visit, server, &record).await?;
    let subject = if record.send.subject.is_empty() { "(no subject)" } else { &record.send.subject };
    let (_, layout) = visit.server_layout(server, subject, Section::Inbox).await?;
    let of_message = format!("/servers/{server}/messages/{id}");
    let summary = MessageSummary {
        subject: record.send.subject.clone(),
        to: record.rcpt_to.clone(),
        from: record.send.mail_from.clone(),
        return_path: None,
        size: record.send.size,
        at: record.send.created_at,
        inbox: format!("/servers/{server}/inbox"),
        files: of_message.clone(),
        timeline: Some(of_message),
        can_delete: false,
    };
    message_page(&visit, layout, summary, parsed)
}

/// Cancels all held messages, as a job. Refused on a live server, where somebody decides on each held message.
pub(super) async fn clear(Path(server): Path<i64>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::MessagesCancelHold).await?;
    if caller.mode == ServerMode::Live {
        let text = "The server is live, so it has no inbox. Its held messages are under Messages.";
        return Err(Problem::Invalid(text.to_owned()));
    }
    let is_dry_run = false;
    form.visit.app().start_job(&caller, MessageAction::CancelHold, "status:Held", is_dry_run).await?;
    Ok(see_other(&format!("/servers/{server}/inbox?done=emptied")))
}
