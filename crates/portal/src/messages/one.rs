//! One message: its timeline, events, content, authentication, and actions.

use askama::Template;
use postroad_app::access::Operation;
use postroad_delivery::queue_admin::Reader;
use postroad_model::{MessageId, ServerId, Status, Timestamp};
use postroad_store::Message;

use super::authentication::{MethodRow, explain};
use super::content;
use super::events::{EventRow, event_rows};
use super::figures::{FiguresView, figures_view};
use super::newest_rows::NewestRows;
use super::preview_options::PreviewOptions;
use super::timeline::{TimelineRow, rows, signing_keys};
use crate::answer::{Answer, page};
use crate::display::{StatusBadge, When, bytes};
use crate::layout::{Layout, Section};
use crate::message_content::MessageContent;
use crate::path::Path;
use crate::problem::Problem;
use crate::query::query;
use crate::sentence::Sentence;
use crate::visit::Visit;

const TABS: [(&str, &str); 8] = [
    ("timeline", "Timeline"),
    ("events", "Events"),
    ("preview", "Preview"),
    ("links", "Links and codes"),
    ("text", "Text"),
    ("source", "HTML source"),
    ("headers", "Headers"),
    ("attachments", "Attachments"),
];

#[derive(Template)]
#[template(path = "messages/one.html")]
struct MessagePage {
    layout: Layout,
    server: i64,
    id: i64,
    token: String,
    status: StatusBadge,
    subject: String,
    to: String,
    from: String,
    message_id: String,
    tag: Option<String>,
    template: Option<String>,
    size: String,
    accepted_at: When,
    next_attempt_at: Option<When>,
    send_at: Option<When>,
    /// `send_at` for a field of a form: UTC, to the minute.
    send_at_minute: String,
    /// Why the message waits at this moment.
    waits: Option<Sentence>,
    is_test: bool,
    metadata: Vec<(String, String)>,
    bounce_for: Option<i64>,
    can_retry: bool,
    is_held: bool,
    /// Query of the page with the recipient's suppression; `None` unless the message is held and its recipient is
    /// suppressed.
    suppression: Option<String>,
    is_scheduled: bool,
    tab: &'static str,
    timeline: NewestRows<TimelineRow>,
    events: NewestRows<EventRow>,
    figures: FiguresView,
    authentication: Vec<MethodRow>,
    /// Whether an attempt recorded the DKIM keys that signed the message.
    is_signed: bool,
    content: MessageContent,
    preview: PreviewOptions,
}

impl MessagePage {
    /// Whether the tab shows the content, which does not change: an update of the page leaves it alone, so that the
    /// preview is not loaded again.
    fn is_content(&self) -> bool {
        !matches!(self.tab, "timeline" | "events")
    }
}

pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::MessagesTimeline).await?;
    let timeline = visit.app().message_timeline(caller.server_id, MessageId(id)).await?;
    let (_, layout) = visit.server_layout(server, &timeline.message.send.subject, Section::Messages).await?;
    let wanted = visit.query.text("view");
    let tab = TABS.iter().map(|(name, _)| *name).find(|name| *name == wanted).unwrap_or("timeline");
    let (mut events, mut authentication, mut is_signed) = (NewestRows::default(), Vec::new(), false);
    let mut content = MessageContent::default();
    let skipped = visit.query.number("skipped").and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
    let mut figures = FiguresView::default();
    match tab {
        "timeline" => {}
        "events" => {
            let caller = visit.caller(server, Operation::EventsList).await?;
            let found = visit.app().message_events(caller.server_id, MessageId(id)).await?;
            events = event_rows(found, skipped);
            let caller = visit.caller(server, Operation::AnalyticsMessage).await?;
            figures = figures_view(visit.app().analytics_message(&caller, MessageId(id)).await?);
        }
        _ => content = read(&visit, server, &timeline.message, tab).await?,
    }
    if tab == "headers" && timeline.message.bounce_for_id == 0 {
        let keys = signing_keys(&timeline.items);
        authentication = explain(&visit, server, &timeline.message.send.mail_from, &keys).await?;
        is_signed = !keys.is_empty();
    }
    let (message, send) = (&timeline.message, &timeline.message.send);
    page(&MessagePage {
        layout,
        server,
        id,
        token: message.token.to_string(),
        status: StatusBadge(message.status),
        subject: send.subject.clone(),
        to: message.rcpt_to.clone(),
        from: send.mail_from.clone(),
        message_id: send.message_id.clone(),
        tag: send.tag.clone(),
        template: send.options.template.clone(),
        size: bytes(send.size),
        accepted_at: When(send.created_at),
        next_attempt_at: message.next_attempt_at.map(When),
        send_at: message.send_at.filter(|_| message.status == Status::Scheduled).map(When),
        send_at_minute: message.send_at.map(minute).unwrap_or_default(),
        waits: why_it_waits(&visit, caller.server_id, message).await?,
        is_test: send.test,
        metadata: send.metadata.clone().into_iter().collect(),
        bounce_for: Some(message.bounce_for_id).filter(|id| *id != 0),
        can_retry: matches!(message.status, Status::Pending | Status::SoftFail),
        is_held: message.status == Status::Held,
        suppression: suppression_of(&visit, server, message).await,
        is_scheduled: message.status == Status::Scheduled,
        tab,
        timeline: rows(timeline.items, skipped),
        events,
        figures,
        authentication,
        is_signed,
        content,
        preview: PreviewOptions::read(&visit),
    })
}

/// Query of the page with the recipient's suppression, which blocks the release of a held message.
async fn suppression_of(visit: &Visit, server: i64, message: &Message) -> Option<String> {
    if message.status != Status::Held {
        return None;
    }
    let caller = visit.caller(server, Operation::SuppressionsList).await.ok()?;
    let found = visit.app().find_suppression(caller.server_id, &message.rcpt_to).await.ok()??;
    Some(query(&[("address", &found.address)]))
}

fn minute(at: Timestamp) -> String {
    at.to_rfc3339().chars().take("2026-01-31T09:00".len()).collect()
}

async fn why_it_waits(
    visit: &Visit,
    server: ServerId,
    message: &Message,
) -> Result<Option<Sentence>, Problem> {
    if !message.status.is_queued() {
        return Ok(None);
    }
    let reader = Reader::Server(server);
    let found = visit.state.queue.find(message.id, reader, visit.app().now()).await?;
    Ok(found.map(|waiting| Sentence(waiting.why)))
}

async fn read(visit: &Visit, server: i64, message: &Message, tab: &str) -> Result<MessageContent, Problem> {
    let parsed = content::view(visit, server, message).await?;
    // The permit is dropped after the message.
    Ok(parsed.map_or_else(MessageContent::gone, |parsed| MessageContent::read(parsed.view, tab)))
}
