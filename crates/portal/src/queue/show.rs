//! The page of a server's queue: number and age of waiting messages, gates, and the messages by due time.

use askama::Template;
use postroad_app::access::Operation;
use postroad_delivery::queue_admin::Reader;
use postroad_model::{DomainName, MessageId, ServerId, Timestamp};
use postroad_store::{QueueEntry, ServerQueue};

use crate::answer::{Answer, page};
use crate::display::{StatusBadge, When, count, elapsed};
use crate::gates::GateRow;
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::query::query;
use crate::sentence::Sentence;
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;

struct Row {
    id: i64,
    to: String,
    status: StatusBadge,
    why: Sentence,
    attempts: u32,
    due_at: When,
    /// How long the message has been due; `None` if it is not due yet.
    overdue: Option<String>,
    accepted_at: When,
}

#[derive(Template)]
#[template(path = "queue/show.html")]
struct QueuePage {
    layout: Layout,
    server: i64,
    waiting: String,
    due: String,
    later: String,
    oldest: String,
    gates: Vec<GateRow>,
    /// The scope of the server's own gate.
    own_scope: String,
    suspended: Option<String>,
    /// The filter by recipient's domain, as typed.
    domain: String,
    problem: Option<String>,
    rows: Vec<Row>,
    /// Query of the first page with the same filter.
    first_page: String,
    next: Option<String>,
    is_later: bool,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::QueueList).await?;
    let (record, layout) = visit.server_layout(server, "Queue", Section::Queue).await?;
    let (app, now) = (visit.app(), visit.app().now());
    let after = cursor(&visit);
    let text = visit.query.text("domain").trim();
    let (domain, problem) = parse_domain(text);
    let (entries, has_more) = app.list_queue_as(&caller, domain, after, PAGE_ROWS).await?;
    let next = entries.last().filter(|_| has_more).map(|last| {
        let (due, after) = (last.due_at.as_micros().to_string(), last.message_id.to_string());
        query(&[("domain", text), ("due", &due), ("after", &after)])
    });
    let totals = app.count_queue_as(&caller).await?;
    let gates = app.list_gates_as(&caller).await?;
    let own = ServerId(server);
    page(&QueuePage {
        layout,
        server,
        waiting: at_least(totals.total, totals),
        due: at_least(totals.due, totals),
        later: at_least(totals.total - totals.due, totals),
        oldest: totals.oldest_due_at.map_or_else(|| "–".to_owned(), |at| elapsed(at, now)),
        gates: gates.into_iter().map(|gate| GateRow::of(gate, Some(own))).collect(),
        own_scope: postroad_model::GateScope::Server(own).as_text(),
        suspended: record.suspended_reason,
        domain: text.to_owned(),
        problem,
        first_page: query(&[("domain", text)]),
        rows: entries.into_iter().map(|entry| row(&visit, entry, now)).collect(),
        next,
        is_later: after.is_some(),
    })
}

/// The domain of a filter, or an error text if the filter is not a domain.
pub(crate) fn parse_domain(text: &str) -> (Option<DomainName>, Option<String>) {
    if text.is_empty() {
        return (None, None);
    }
    match DomainName::parse(text) {
        Ok(domain) => (Some(domain), None),
        Err(error) => {
            (None, Some(format!("This is not a domain: {error}. Messages to all domains are shown.")))
        }
    }
}

pub(crate) fn cursor(visit: &Visit) -> Option<(Timestamp, MessageId)> {
    let due_at = Timestamp::from_micros(visit.query.number("due")?);
    Some((due_at, MessageId(visit.query.number("after")?)))
}

fn at_least(number: u64, totals: ServerQueue) -> String {
    if totals.has_more { format!("> {}", count(number)) } else { count(number) }
}

fn row(visit: &Visit, entry: QueueEntry, now: Timestamp) -> Row {
    Row {
        id: entry.message_id.0,
        why: Sentence(visit.state.queue.explain_wait(&entry, Reader::Server(entry.server_id), now)),
        status: StatusBadge(entry.status),
        attempts: entry.attempts,
        due_at: When(entry.due_at),
        overdue: (entry.due_at <= now).then(|| elapsed(entry.due_at, now)),
        accepted_at: When(entry.created_at),
        to: entry.rcpt_to,
    }
}
