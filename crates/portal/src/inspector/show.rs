//! The inspector's page: its URL, and the received requests.

use std::borrow::Cow;
use std::io;

use askama::Template;
use postroad_app::InspectorView;
use postroad_app::access::Operation;
use postroad_store::InspectorRequest;

use crate::answer::{Answer, page};
use crate::display::{When, beginning, beginning_on_page, bytes, first_headers};
use crate::layout::{Layout, Section};
use crate::once;
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

/// Maximum bytes shown of the body (also of the query), and of the headers: for the newest request, for each older
/// request, and for a request on its own page. A page with fifty requests stays below 100 kB.
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
    /// Whether the body was longer than the part that is stored.
    is_cut: bool,
    /// Whether the request's own page shows more than this row.
    has_more: bool,
    status: u16,
    /// The field `type` of a JSON body; our webhooks name the event there.
    event: Option<String>,
}

/// An inspector in use.
struct OpenInspector {
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
    open: Option<OpenInspector>,
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
    if let Some(number) = visit.query.number("request").and_then(|number| u64::try_from(number).ok()) {
        let found = visit.app().find_inspector_request(caller.server_id, number).await?;
        let request = row(&found.ok_or(Problem::NotFound)?, ALL_BYTES);
        return page(&RequestPage { layout, server, request });
    }
    let found = visit.app().find_inspector(caller.server_id).await?;
    let open = found.map(|InspectorView { token, expires_at, requests }| OpenInspector {
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

/// A request as a row, with at most this many bytes of the body, of the query and of the headers.
fn row(received: &InspectorRequest, (body_max, headers_max): (usize, usize)) -> RequestRow {
    let InspectorRequest { number, at, request } = received;
    let parsed: Option<serde_json::Value> = serde_json::from_str(&request.body).ok();
    let event = parsed.as_ref().and_then(|value| value["type"].as_str()).map(ToOwned::to_owned);
    let whole = match parsed.and_then(|value| with_indents(&value, indented_max(&request.body))) {
        Some(indented) => Cow::Owned(indented),
        None => Cow::Borrowed(request.body.as_str()),
    };
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

/// Maximum number of bytes of a body with indents: deep nesting could make it a hundred times as long.
fn indented_max(body: &str) -> usize {
    4 * body.len() + (16 << 10)
}

/// A JSON value on several lines; `None` if that takes more than `bytes_max` bytes.
fn with_indents(value: &serde_json::Value, bytes_max: usize) -> Option<String> {
    let mut written = LimitedBuffer { bytes: Vec::new(), bytes_max };
    serde_json::to_writer_pretty(&mut written, value).ok()?;
    String::from_utf8(written.bytes).ok()
}

/// Bytes up to a maximum; writing more is an error.
struct LimitedBuffer {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl io::Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use postroad_model::Timestamp;
    use postroad_store::NewInspectorRequest;

    use super::*;

    fn shown(body: String) -> String {
        let request = NewInspectorRequest { body, ..NewInspectorRequest::default() };
        row(&InspectorRequest { number: 1, at: Timestamp::from_micros(0), request }, ALL_BYTES).body
    }

    #[test]
    fn json_gets_indents_unless_they_make_it_much_longer() {
        let event = r#"{"type":"message.sent","data":{"tags":["a","b"]}}"#;
        assert!(shown(event.to_owned()).contains("\n  \"data\": {\n    \"tags\": [\n      \"a\",\n"));
        let deep = format!("{}{}1{}", "[".repeat(120), "1,".repeat(30_000), "]".repeat(120));
        assert_eq!(shown(deep.clone()), deep);
        assert_eq!(shown("not {json".to_owned()), "not {json");
    }
}
