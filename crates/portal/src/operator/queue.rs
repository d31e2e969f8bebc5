//! Waiting messages of all servers, each with the reason why it waits. The operator can retry or cancel ticked
//! messages, and find a message by id, token or Message-ID.

use askama::Template;
use postroad_app::accounts::AccountRefusal;
use postroad_delivery::queue_admin::Reader;
use postroad_model::{MessageId, Timestamp};
use postroad_store::QueueEntry;

use super::TABS;
use crate::answer::{Answer, page};
use crate::display::{StatusBadge, When, count, elapsed};
use crate::layout::{Layout, Section};
use crate::messages::Act;
use crate::problem::Problem;
use crate::query::query;
use crate::queue::{cursor, parse_domain};
use crate::redirect::see_other;
use crate::sentence::Sentence;
use crate::visit::{Form, Visit};

const PATH: &str = "/operator/queue";
const PAGE_ROWS: usize = 50;
/// Maximum number of ticked messages in one form; a page lists fewer.
const TICKED_MAX: usize = 100;

struct Row {
    id: i64,
    server_id: i64,
    server: String,
    to: String,
    status: StatusBadge,
    why: Sentence,
    attempts: u32,
    due_at: When,
    /// How long the message has been due; `None` if it is not due yet.
    overdue: Option<String>,
    accepted_at: When,
}

struct FoundRow {
    id: i64,
    server_id: i64,
    server: String,
}

#[derive(Template)]
#[template(path = "operator/queue.html")]
struct QueuePage {
    layout: Layout,
    /// Id, token or Message-ID that was searched for.
    wanted: String,
    found: Vec<FoundRow>,
    not_found: Option<String>,
    /// The filter as typed.
    domain: String,
    problem: Option<String>,
    rows: Vec<Row>,
    read_max: String,
    /// Query of the first page with the same filter.
    first_page: String,
    next: Option<String>,
    is_later: bool,
}

pub(super) async fn show(visit: Visit) -> Answer {
    let (text, wanted) = (visit.query.text("domain").trim(), visit.query.text("message").trim());
    let (domain, problem) = parse_domain(text);
    let after = cursor(&visit);
    // This call checks the permission, so it comes before all other reads.
    let (entries, has_more) =
        visit.app().list_installation_queue(&visit.requester, domain, after, PAGE_ROWS).await?;
    let (found, not_found) = find(&visit, wanted).await?;
    if let [only] = found.as_slice() {
        return Ok(see_other(&format!("/servers/{}/messages/{}", only.server_id, only.id)));
    }
    let layout = visit.layout("Waiting mail", Section::Operator).await?;
    let now = visit.app().now();
    let next = entries.last().filter(|_| has_more).map(|last| {
        let (due, after) = (last.due_at.as_micros().to_string(), last.message_id.to_string());
        query(&[("domain", text), ("due", &due), ("after", &after)])
    });
    page(&QueuePage {
        layout,
        wanted: wanted.to_owned(),
        found,
        not_found,
        domain: text.to_owned(),
        problem,
        rows: entries.into_iter().map(|entry| row(&visit, entry, now)).collect(),
        read_max: count(QueueEntry::READ_MAX),
        first_page: query(&[("domain", text)]),
        next,
        is_later: after.is_some(),
    })
}

fn row(visit: &Visit, entry: QueueEntry, now: Timestamp) -> Row {
    Row {
        id: entry.message_id.0,
        server_id: entry.server_id.0,
        why: Sentence(visit.state.queue.explain_wait(&entry, Reader::Operator, now)),
        status: StatusBadge(entry.status),
        attempts: entry.attempts,
        due_at: When(entry.due_at),
        overdue: (entry.due_at <= now).then(|| elapsed(entry.due_at, now)),
        accepted_at: When(entry.created_at),
        to: entry.rcpt_to,
        server: entry.server_name,
    }
}

/// Messages with the id, token or Message-ID, or why there is none to show.
async fn find(visit: &Visit, wanted: &str) -> Result<(Vec<FoundRow>, Option<String>), Problem> {
    if wanted.is_empty() {
        return Ok((Vec::new(), None));
    }
    let located = visit.app().locate_messages_as(&visit.requester, wanted).await?;
    let mut found = Vec::new();
    for (server_id, id) in located.found {
        let server = match visit.app().find_server_as(&visit.requester, server_id).await {
            Ok(server) => server,
            // The server was removed after the message was found.
            Err(AccountRefusal::NotFound(_)) => continue,
            Err(other) => return Err(other.into()),
        };
        found.push(FoundRow { id: id.0, server_id: server_id.0, server: server.name });
    }
    let not_found = match (found.is_empty(), located.is_cut) {
        (false, _) => None,
        (true, false) => Some("No message of any server has this id, token or Message-ID.".to_owned()),
        (true, true) => Some(
            "It was not found in time, and not every server was searched. Search by the message's id, or on the \
             server's own page."
                .to_owned(),
        ),
    };
    Ok((found, not_found))
}

/// Retries or cancels the ticked messages.
pub(super) async fn submit(form: Form) -> Answer {
    let Form { visit, fields } = form;
    // Called only to check the permission, also if nothing is ticked.
    visit.app().installation_status(&visit.requester).await?;
    let act = match fields.text("act") {
        text @ ("retry" | "cancel_queued") => Act::parse(text)?,
        _ => return Err(Problem::Invalid("Choose whether to retry or to cancel.".to_owned())),
    };
    let ticked: Vec<(i64, MessageId)> = fields.all("id").take(TICKED_MAX).filter_map(parse_ticked).collect();
    if ticked.is_empty() {
        return Err(Problem::Invalid("No message is ticked. Go back and tick some.".to_owned()));
    }
    let mut is_partial = false;
    for (server, id) in ticked {
        match change(&visit, act, server, id).await {
            Ok(()) => {}
            Err(Problem::Invalid(_) | Problem::NotFound) => is_partial = true,
            Err(other) => return Err(other),
        }
    }
    let done = act.bulk_notice(is_partial);
    Ok(see_other(&format!("{PATH}{}", query(&[("domain", fields.text("domain")), ("done", done)]))))
}

async fn change(visit: &Visit, act: Act, server: i64, id: MessageId) -> Result<(), Problem> {
    let caller = act.caller(visit, server).await?;
    act.run(visit.app(), &caller, id).await
}

/// Reads `SERVER/MESSAGE`.
fn parse_ticked(text: &str) -> Option<(i64, MessageId)> {
    let (server, id) = text.split_once('/')?;
    Some((server.parse().ok()?, MessageId(id.parse().ok()?)))
}
