//! The page: the URL, and the received requests.

use std::sync::Arc;

use askama::Template;
use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_model::ServerId;

use super::stored_requests::{Received, Snapshot};
use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::live_watch;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::shown::{When, bytes};
use crate::visit::{Form, Visit};

struct RequestRow {
    number: u64,
    at: When,
    method: String,
    query: String,
    headers: Vec<(String, String)>,
    body: String,
    size: String,
    is_cut: bool,
    status: u16,
    /// The type of the event, if it is one of ours.
    event: Option<String>,
}

struct Open {
    url: String,
    until: When,
    /// When the page was made, for its form that creates a webhook.
    opened_at: i64,
    requests: Vec<RequestRow>,
}

#[derive(Template)]
#[template(path = "webhooks/inspector.html")]
struct InspectorPage {
    layout: Layout,
    server: i64,
    open: Option<Open>,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    visit.caller(server, Operation::WebhooksAttempts).await?;
    let (_, layout) = visit.server_layout(server, "Request inspector", Section::Webhooks).await?;
    let found = visit.state.inspectors.find(ServerId(server), visit.app().now());
    let open = found.map(|Snapshot { token, until, requests }| Open {
        url: format!("{}/inspect/{token}", visit.base_url),
        until: When(until),
        opened_at: visit.app().now().as_micros(),
        requests: requests.into_iter().map(row).collect(),
    });
    page(&InspectorPage { layout, server, open })
}

pub(super) async fn create(Path(server): Path<i64>, form: Form) -> Answer {
    form.visit.caller(server, Operation::WebhooksCreate).await?;
    let opened = form.visit.state.inspectors.open(ServerId(server), form.visit.app().now());
    opened.ok_or_else(|| Problem::Internal("no random bytes".to_owned()))?;
    Ok(see_other(&format!("/servers/{server}/webhooks/inspector")))
}

pub(super) async fn clear(Path(server): Path<i64>, form: Form) -> Answer {
    form.visit.caller(server, Operation::WebhooksCreate).await?;
    form.visit.state.inspectors.clear(ServerId(server));
    Ok(see_other(&format!("/servers/{server}/webhooks/inspector?done=removed")))
}

pub(super) async fn live(Path(server): Path<i64>, visit: Visit) -> Answer {
    visit.caller(server, Operation::WebhooksAttempts).await?;
    let changed = visit.state.inspectors.follow(ServerId(server)).ok_or(Problem::NotFound)?;
    live_watch::stream(&visit, changed)
}

fn row(received: Arc<Received>) -> RequestRow {
    let received = Arc::unwrap_or_clone(received);
    let parsed: Option<serde_json::Value> = serde_json::from_str(&received.body).ok();
    let event = parsed.as_ref().and_then(|value| value["type"].as_str()).map(ToOwned::to_owned);
    let pretty = parsed.and_then(|value| serde_json::to_string_pretty(&value).ok());
    RequestRow {
        number: received.number,
        at: When(received.at),
        method: received.method,
        query: received.query,
        headers: received.headers,
        size: bytes(received.body.len() as u64),
        body: pretty.unwrap_or(received.body),
        is_cut: received.is_cut,
        status: received.status,
        event,
    }
}
