//! One message of an inbox: links and codes first, then its content.

use std::sync::Arc;

use askama::Template;
use postroad_app::access::Operation;
use postroad_app::{Extracted, MessageView, extract};
use postroad_delivery::CaughtMessage;
use postroad_model::Timestamp;

use super::inbox;
use crate::answer::{Answer, download, page};
use crate::display::{When, beginning_on_page, bytes};
use crate::layout::{Layout, Section};
use crate::message_content::MessageContent;
use crate::messages::content::{self, ParsedMessage, record};
use crate::messages::{PreviewOptions, attachment_of, preview_of};
use crate::path::Path;
use crate::problem::Problem;
use crate::visit::Visit;

/// Maximum number of links on the page.
const LINKS_MAX: usize = 50;
/// Longest header above the content; the tab with all headers has the whole.
const HEADER_BYTES_MAX: usize = 2_000;

const TABS: [(&str, &str); 4] =
    [("preview", "Preview"), ("text", "Text"), ("headers", "Headers"), ("source", "HTML source")];

/// Facts about a message that the page shows beside the content, and paths for the page's links.
pub(super) struct MessageSummary {
    pub(super) subject: String,
    pub(super) to: String,
    /// Address of the sender, shown if none of the headers From, Cc and Reply-To is known.
    pub(super) from: String,
    /// Envelope sender; `None` if `from` is the envelope sender.
    pub(super) return_path: Option<String>,
    pub(super) size: u64,
    pub(super) at: Timestamp,
    /// Path of the inbox.
    pub(super) inbox: String,
    /// Path below which the preview, attachments and download of the message are.
    pub(super) files: String,
    /// Path of the page with the timeline of the message.
    pub(super) timeline: Option<String>,
    /// Whether the page has a button that deletes the message.
    pub(super) can_delete: bool,
}

#[derive(Template)]
#[template(path = "inbox/one.html")]
struct MessagePage {
    layout: Layout,
    summary: MessageSummary,
    /// Names and values of the message's headers From, Cc and Reply-To.
    correspondents: Vec<(&'static str, String)>,
    size: String,
    at: When,
    extracted: Extracted,
    tab: &'static str,
    content: MessageContent,
    preview: PreviewOptions,
}

pub(super) async fn show(Path(id): Path<u64>, visit: Visit) -> Answer {
    let caught = find(&visit, id)?;
    let parsed = parse(&visit, &caught).await?;
    let subject = if caught.subject.is_empty() { "(no subject)" } else { &caught.subject };
    let layout = visit.layout(subject, Section::Inbox).await?;
    let summary = MessageSummary {
        subject: caught.subject.clone(),
        to: caught.rcpt_to.to_string(),
        from: caught.from.clone(),
        return_path: Some(caught.mail_from.clone()),
        size: caught.raw.len() as u64,
        at: caught.received_at,
        inbox: "/inbox".to_owned(),
        files: format!("/inbox/{id}"),
        timeline: timeline_path(&visit, &caught).await,
        can_delete: true,
    };
    message_page(&visit, layout, summary, Some(parsed))
}

/// Page with the timeline of a caught message, if this person may see it and retention has kept it.
async fn timeline_path(visit: &Visit, caught: &CaughtMessage) -> Option<String> {
    let (server, id) = visit.app().message_of_return_path(&caught.mail_from)?;
    record(visit, server.0, id.0).await.ok()?;
    Some(format!("/servers/{server}/messages/{id}"))
}

/// The page of a message; `parsed` is `None` if retention has removed its content.
pub(super) fn message_page(
    visit: &Visit,
    layout: Layout,
    summary: MessageSummary,
    parsed: Option<ParsedMessage>,
) -> Answer {
    let view = parsed.as_ref().map(|parsed| &parsed.view);
    let correspondents = view.map(correspondents).unwrap_or_default();
    let mut extracted = view.map(extract).unwrap_or_default();
    extracted.links.truncate(LINKS_MAX);
    let default_tab = if view.is_some_and(|view| view.html_body.is_some()) { "preview" } else { "text" };
    let wanted = visit.query.text("view");
    let tab = TABS.iter().map(|(name, _)| *name).find(|name| *name == wanted).unwrap_or(default_tab);
    page(&MessagePage {
        layout,
        size: bytes(summary.size),
        at: When(summary.at),
        summary,
        correspondents,
        extracted,
        tab,
        content: parsed.map_or_else(MessageContent::gone, |parsed| MessageContent::read(parsed.view, tab)),
        preview: PreviewOptions::read(visit),
    })
}

fn correspondents(view: &MessageView) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for name in ["From", "Cc", "Reply-To"] {
        let header = view.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        if let Some(value) = header.and_then(|(_, values)| values.first()) {
            found.push((name, beginning_on_page(value, HEADER_BYTES_MAX).to_owned()));
        }
    }
    found
}

pub(super) async fn preview(Path(id): Path<u64>, visit: Visit) -> Answer {
    let caught = find(&visit, id)?;
    let parsed = parse(&visit, &caught).await?;
    preview_of(&visit, parsed).await
}

pub(super) async fn raw(Path(id): Path<u64>, visit: Visit) -> Answer {
    let caught = find(&visit, id)?;
    Ok(download("message/rfc822", &format!("caught-{id}.eml"), caught.raw.clone()))
}

pub(super) async fn attachment(Path((id, number)): Path<(u64, usize)>, visit: Visit) -> Answer {
    let caught = find(&visit, id)?;
    let parsed = parse(&visit, &caught).await?;
    attachment_of(&visit, parsed, number).await
}

fn find(visit: &Visit, id: u64) -> Result<Arc<CaughtMessage>, Problem> {
    inbox(visit, Operation::InstallationInbox)?.find(id).ok_or(Problem::NotFound)
}

async fn parse(visit: &Visit, caught: &CaughtMessage) -> Result<ParsedMessage, Problem> {
    let permit = visit.state.work.body(visit.person.user.account_id).await?;
    content::parse(caught.raw.clone(), permit).await
}
