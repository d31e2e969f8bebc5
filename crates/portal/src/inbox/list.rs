//! List of the messages that the installation caught instead of sending them, as in `postroad dev`.

use std::collections::HashSet;

use askama::Template;
use postroad_app::DEV_DOMAIN;
use postroad_app::access::Operation;
use postroad_delivery::CaughtMessage;

use super::inbox;
use crate::answer::{Answer, page};
use crate::display::{When, beginning_on_page, bytes};
use crate::layout::{Layout, Section};
use crate::live_watch;
use crate::path::Path;
use crate::problem::Problem;
use crate::query::query;
use crate::redirect::see_other;
use crate::snippets::first_command;
use crate::visit::{Form, Visit};

const PAGE_ROWS: usize = 100;
/// Longest sender in a row; the message's page has more of it.
const FROM_BYTES_MAX: usize = 300;

pub(super) struct Row {
    pub(super) path: String,
    pub(super) to: String,
    pub(super) from: String,
    pub(super) subject: String,
    pub(super) size: String,
    pub(super) at: When,
}

#[derive(Template)]
#[template(path = "inbox/list.html")]
pub(super) struct ListPage {
    pub(super) layout: Layout,
    /// Path of the inbox.
    pub(super) base: String,
    /// Path of the inbox's event stream.
    pub(super) live: String,
    /// Sentences on where the messages come from and what happens to them.
    pub(super) about: &'static str,
    /// Operation that deletes all messages.
    pub(super) clear_operation: &'static str,
    /// Question to confirm before all messages are deleted.
    pub(super) question: &'static str,
    pub(super) rows: Vec<Row>,
    pub(super) q: String,
    /// Error in the search.
    pub(super) problem: Option<String>,
    /// Query string of the next page.
    pub(super) next: Option<String>,
    /// Command that sends a message to this inbox.
    pub(super) first_command: String,
    /// Id of the server if it is live: its mail is delivered, so that none arrives in this inbox.
    pub(super) live_server: Option<i64>,
}

pub(super) async fn show(visit: Visit) -> Answer {
    let q = visit.query.text("q").to_lowercase();
    let fits = |message: &CaughtMessage| {
        [message.rcpt_to.as_str(), &message.from, &message.subject]
            .iter()
            .any(|text| text.to_lowercase().contains(&q))
    };
    let before = visit.query.number("before").and_then(|id| u64::try_from(id).ok());
    let caught = inbox(&visit, Operation::InstallationInbox)?.list(usize::MAX);
    let older = caught.iter().filter(|message| before.is_none_or(|before| message.id < before));
    let mut found: Vec<_> = older.filter(|message| fits(message)).take(PAGE_ROWS + 1).collect();
    let has_more = found.len() > PAGE_ROWS;
    found.truncate(PAGE_ROWS);
    let last = found.last().filter(|_| has_more);
    let next = last.map(|last| query(&[("q", visit.query.text("q")), ("before", &last.id.to_string())]));
    let rows = found.into_iter().map(|message| row(message)).collect();
    let layout = visit.layout("Inbox", Section::Inbox).await?;
    page(&ListPage {
        layout,
        base: "/inbox".to_owned(),
        live: "/inbox/live".to_owned(),
        about: "Mail that this installation caught instead of sending it: it went through the whole pipeline, but never left this \
                machine. The newest 10,000 messages (256 MiB) are kept in memory until the program ends.",
        clear_operation: Operation::InstallationClearInbox.name(),
        question: "Delete all caught messages?",
        rows,
        q: visit.query.text("q").to_owned(),
        problem: None,
        next,
        first_command: first_command(&visit.base_url, &visit.person.user.email, Some(DEV_DOMAIN)),
        live_server: None,
    })
}

fn row(message: &CaughtMessage) -> Row {
    Row {
        path: format!("/inbox/{}", message.id),
        to: message.rcpt_to.to_string(),
        from: beginning_on_page(&message.from, FROM_BYTES_MAX).to_owned(),
        subject: message.subject.clone(),
        size: bytes(message.raw.len() as u64),
        at: When(message.received_at),
    }
}

pub(super) async fn clear(form: Form) -> Answer {
    let inbox = inbox(&form.visit, Operation::InstallationClearInbox)?;
    form.visit.app().record_inbox_clearing(&form.visit.requester).await?;
    inbox.clear();
    Ok(see_other("/inbox?done=removed"))
}

/// Deletes one message.
pub(super) async fn delete(Path(id): Path<u64>, form: Form) -> Answer {
    let inbox = inbox(&form.visit, Operation::InstallationClearInbox)?;
    if inbox.find(id).is_none() {
        return Err(Problem::NotFound);
    }
    form.visit.app().record_inbox_clearing(&form.visit.requester).await?;
    inbox.remove(&HashSet::from([id]));
    Ok(see_other("/inbox?done=removed"))
}

pub(super) async fn live(visit: Visit) -> Answer {
    let changed = inbox(&visit, Operation::InstallationInbox)?.follow();
    live_watch::stream(&visit, changed)
}
