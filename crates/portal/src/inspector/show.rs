//! The page: the URL, and the received requests.

use askama::Template;
use postroad_app::InspectorView;
use postroad_app::access::Operation;
use postroad_store::InspectorRequest;

use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::once;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::shown::{When, beginning, beginning_on_page, bytes, first_headers};
use crate::visit::{Form, Visit};

/// Bytes shown of the body and of the headers: of the newest request, of each other request, and of a request on its
/// own page. A page with fifty requests stays below 100 kB.
const NEWEST_BYTES: (usize, usize) = (6_000, 3_000);
const LISTED_BYTES: (usize, usize) = (500, 400);
const ALL_BYTES: (usize, usize) = (usize::MAX, usize::MAX);
const EVENT_BYTES: usize = 60;

struct RequestRow {
    number: u64,
    at: When,
    method: String,
    query: String,
    headers: Vec<(String, String)>,
    body: String,
    size: String,
    /// Whether the request was longer than the part that is kept.
    is_cut: bool,
    /// Whether the page of the request shows more.
    has_more: bool,
    status: u16,
    /// The field `type` of a JSON body; our webhooks name the event there.
    event: Option<String>,
}

/// An inspector in use.
struct Open {
    url: String,
    /// The same inspector at the URL by which webhooks of this service reach it.
    webhook_url: String,
    until: When,
    /// Idempotency key of the form that creates a webhook.
    once: String,
    requests: Vec<RequestRow>,
}

#[derive(Template)]
#[template(path = "webhooks/inspector.html")]
struct InspectorPage {
    layout: Layout,
    server: i64,
    open: Option<Open>,
}

#[derive(Template)]
#[template(path = "webhooks/inspected.html")]
struct RequestPage {
    layout: Layout,
    server: i64,
    request: RequestRow,
}

pub(super) async fn show(Path(server): Path<i64>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::WebhooksAttempts).await?;
    let (_, layout) = visit.server_layout(server, "Request inspector", Section::Webhooks).await?;
    let found = visit.app().find_inspector(caller.server_id).await?;
    if let Some(number) = visit.query.number("request").and_then(|number| u64::try_from(number).ok()) {
        let requests = found.map(|found| found.requests).unwrap_or_default();
        let request = requests.iter().find(|one| one.number == number).ok_or(Problem::NotFound)?;
        return page(&RequestPage { layout, server, request: row(request, ALL_BYTES) });
    }
    let open = found.map(|InspectorView { token, expires_at, requests }| Open {
        url: format!("{}/inspect/{token}", visit.base_url),
        webhook_url: format!("{}/inspect/{token}", visit.state.own_url(&visit.base_url)),
        until: When(expires_at),
        once: once::new_once(),
        requests: requests
            .iter()
            .enumerate()
            .map(|(at, request)| row(request, if at == 0 { NEWEST_BYTES } else { LISTED_BYTES }))
            .collect(),
    });
    page(&InspectorPage { layout, server, open })
}

pub(super) async fn create(Path(server): Path<i64>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksOpenInspector).await?;
    form.visit.app().open_inspector(&caller).await?;
    Ok(see_other(&format!("/servers/{server}/webhooks/inspector")))
}

pub(super) async fn clear(Path(server): Path<i64>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksClearInspector).await?;
    form.visit.app().clear_inspector(&caller).await?;
    Ok(see_other(&format!("/servers/{server}/webhooks/inspector?done=removed")))
}

/// A request as a row, with at most this many bytes of the body and of the headers.
fn row(received: &InspectorRequest, (body_max, headers_max): (usize, usize)) -> RequestRow {
    let InspectorRequest { number, at, request } = received;
    let parsed: Option<serde_json::Value> = serde_json::from_str(&request.body).ok();
    let event = parsed.as_ref().and_then(|value| value["type"].as_str()).map(ToOwned::to_owned);
    let pretty = parsed.and_then(|value| serde_json::to_string_pretty(&value).ok());
    let whole = pretty.unwrap_or_else(|| request.body.clone());
    let body = beginning_on_page(&whole, body_max).to_owned();
    let query = beginning_on_page(&request.query, body_max).to_owned();
    let (headers, has_more_headers) = first_headers(request.headers.iter().cloned(), headers_max);
    RequestRow {
        number: *number,
        at: When(*at),
        method: request.method.clone(),
        has_more: has_more_headers || body.len() < whole.len() || query.len() < request.query.len(),
        query,
        headers,
        size: bytes(request.body.len() as u64),
        body,
        is_cut: request.is_cut,
        status: request.status,
        event: event.map(|event| beginning(&event, EVENT_BYTES).to_owned()),
    }
}
