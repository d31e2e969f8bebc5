//! Events of a server, such as those of its messages, domains and webhooks, newest first.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use postroad_app::EventSelection;
use postroad_app::access::Operation;
use postroad_app::analytics::Zone;
use postroad_model::{EventId, EventKind, EventSet, EventSeverity};
use postroad_store::FeedEvent;
use serde_json::Value;

use crate::answer::{Answer, page};
use crate::days::DayRange;
use crate::display::When;
use crate::fields::Fields;
use crate::layout::{Layout, Section};
use crate::page_routes::get;
use crate::path::Path;
use crate::query::query;
use crate::state::PortalState;
use crate::text_budget::TextBudget;
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;
/// Maximum bytes of an event's details in the list; the page of a single event shows them in full.
const DATA_BYTES_MAX: usize = 2_000;
/// Maximum bytes of a recipient or subject.
const TEXT_BYTES_MAX: usize = 500;

/// The filters of a query.
struct Filters {
    /// Kinds to show; empty for all.
    kinds: Vec<EventKind>,
    days: DayRange,
}

impl Filters {
    fn read(fields: &Fields, zone: &Zone) -> Self {
        Self {
            kinds: fields.all("kind").filter_map(EventKind::parse).collect(),
            days: DayRange::read(fields, zone),
        }
    }

    fn is_set(&self) -> bool {
        !self.kinds.is_empty() || self.days.is_set()
    }

    /// Whether the section *Days, and several kinds* has a value, so it is shown open.
    fn has_rare_filters(&self) -> bool {
        self.kinds.len() > 1 || self.days.is_open()
    }

    fn selection(&self) -> EventSelection {
        let all = self.kinds.is_empty();
        let kinds = if all { EventSet::ALL } else { self.kinds.iter().copied().collect() };
        EventSelection { kinds, since: self.days.from(), until: self.days.to() }
    }

    fn query(&self, before: &str) -> String {
        let mut pairs: Vec<(&str, &str)> = self.kinds.iter().map(|kind| ("kind", kind.as_str())).collect();
        pairs.extend([("since", self.days.since.as_str()), ("until", &self.days.until), ("before", before)]);
        query(&pairs)
    }
}

struct KindChoice {
    name: &'static str,
    is_chosen: bool,
}

struct Row {
    id: i64,
    at: When,
    kind: &'static str,
    tone: &'static str,
    is_test: bool,
    /// Id, recipient and subject of the message that the event is about.
    message: Option<(i64, String, String)>,
    /// Details as JSON, one field per line; empty if there are none.
    data: String,
    /// Whether `data` is cut.
    is_cut: bool,
}

#[derive(Template)]
#[template(path = "events/list.html")]
struct EventsPage {
    layout: Layout,
    server: i64,
    filters: Filters,
    kinds: Vec<KindChoice>,
    rows: Vec<Row>,
    next: Option<String>,
    /// Whether newer events may exist: on later pages, and if one event is shown.
    is_later: bool,
    /// Whether one event is shown in full.
    is_single: bool,
}

pub(crate) fn routes() -> Router<Arc<PortalState>> {
    Router::new().route("/servers/{server}/events", get(show))
}

async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::EventsList).await?;
    let (_, layout) = visit.server_layout(server, "Events", Section::Events).await?;
    let filters = Filters::read(&visit.query, &visit.zone);
    let single = visit.query.number("event");
    // A single event is the newest one before the next id.
    let before = single.map(|id| id.saturating_add(1)).or_else(|| visit.query.number("before")).map(EventId);
    let limit = if single.is_some() { 1 } else { PAGE_ROWS };
    let mut found = visit.app().list_recent_events(&caller, filters.selection(), before, limit).await?;
    if let Some(id) = single {
        found.events.retain(|event| event.id.0 == id);
        found.before = None;
    }
    let bytes_max = if single.is_some() { usize::MAX } else { DATA_BYTES_MAX };
    let mut budget = TextBudget::default();
    let kinds = EventKind::ALL
        .iter()
        .map(|kind| KindChoice { name: kind.as_str(), is_chosen: filters.kinds.contains(kind) });
    page(&EventsPage {
        layout,
        server,
        kinds: kinds.collect(),
        rows: found.events.into_iter().map(|event| row(event, &mut budget, bytes_max)).collect(),
        next: found.before.map(|before| filters.query(&before.to_string())),
        is_later: before.is_some(),
        is_single: single.is_some(),
        filters,
    })
}

fn row(event: FeedEvent, budget: &mut TextBudget, bytes_max: usize) -> Row {
    let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
    let is_empty = data.as_object().is_none_or(serde_json::Map::is_empty);
    let message = event.message.map(|message| {
        let to = budget.cut(&message.rcpt_to, TEXT_BYTES_MAX);
        (message.id.0, to, budget.cut(&message.subject, TEXT_BYTES_MAX))
    });
    let data = if is_empty { String::new() } else { format!("{data:#}") };
    let (data, is_whole) = if bytes_max == usize::MAX { (data, true) } else { budget.take(&data, bytes_max) };
    Row {
        id: event.id.0,
        at: When(event.at),
        kind: event.kind.as_str(),
        tone: tone(event.kind.severity()),
        is_test: event.test,
        message,
        data,
        is_cut: !is_whole,
    }
}

/// Colour class of the badge.
fn tone(severity: EventSeverity) -> &'static str {
    match severity {
        EventSeverity::Info => "calm",
        EventSeverity::Success => "good",
        EventSeverity::Notice => "off",
        EventSeverity::Warning => "warn",
        EventSeverity::Error => "bad",
    }
}
