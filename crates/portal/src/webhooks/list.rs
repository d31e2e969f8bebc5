//! List of webhooks, with the form for a new one.

use askama::Template;
use axum::http::StatusCode;
use postroad_app::access::Operation;
use postroad_app::{EventFilter, events_unless_all};
use postroad_model::{EventKind, WebhookId};
use postroad_store::Webhook;

use crate::answer::{Answer, page_with_status};
use crate::display::When;
use crate::fields::Fields;
use crate::layout::{Layout, Section};
use crate::once;
use crate::path::Path;
use crate::query::page_after;
use crate::visit::Visit;

const PAGE_ROWS: usize = 50;

struct Row {
    id: i64,
    url: String,
    format: &'static str,
    events: String,
    is_enabled: bool,
    disabled_reason: Option<String>,
    failing_since: Option<When>,
    last_success_at: Option<When>,
}

#[derive(Template)]
#[template(path = "webhooks/list.html")]
struct ListPage {
    layout: Layout,
    server: i64,
    /// Part of the URL to search for.
    q: String,
    rows: Vec<Row>,
    next: Option<String>,
    problem: Option<String>,
    kinds: Vec<&'static str>,
    /// Idempotency key of the form: submitting it twice creates one webhook.
    once: String,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    list(&visit, server, StatusCode::OK, None).await
}

pub(super) async fn list(visit: &Visit, server: i64, status: StatusCode, problem: Option<String>) -> Answer {
    let caller = visit.caller(server, Operation::WebhooksList).await?;
    let (_, layout) = visit.server_layout(server, "Webhooks", Section::Webhooks).await?;
    let after = visit.query.number("after").map(WebhookId);
    let q = visit.query.text("q").to_owned();
    let part = Some(q.as_str()).filter(|part| !part.is_empty());
    let (webhooks, has_more) = visit.app().list_webhooks(&caller, part, after, PAGE_ROWS).await?;
    let next = page_after(&q, webhooks.last().map(|last| last.id), has_more);
    let rows = webhooks.into_iter().map(row).collect();
    let once = once::new_once();
    page_with_status(status, &ListPage { layout, server, q, rows, next, problem, kinds: kinds(), once })
}

fn row(webhook: Webhook) -> Row {
    Row {
        id: webhook.id.0,
        format: webhook.format.as_str(),
        events: events(&webhook),
        is_enabled: webhook.enabled,
        disabled_reason: webhook.disabled_reason,
        failing_since: webhook.failing_since.map(When),
        last_success_at: webhook.last_success_at.map(When),
        url: webhook.url,
    }
}

/// The events of a webhook in one line.
pub(super) fn events(webhook: &Webhook) -> String {
    match events_unless_all(webhook.events, webhook.format) {
        None => "all events".to_owned(),
        Some(kinds) => kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", "),
    }
}

pub(super) fn kinds() -> Vec<&'static str> {
    EventKind::ALL.iter().map(|kind| kind.as_str()).collect()
}

/// Events that are ticked; none means all.
pub(super) fn read_events(fields: &Fields) -> EventFilter {
    let named: Vec<String> = fields.all("event").map(ToOwned::to_owned).collect();
    if named.is_empty() { EventFilter::All } else { EventFilter::Named(named) }
}
