//! Routes for people and test suites: the dev inbox as JSON (docs/dev-inbox.md) and as a page, Mailpit's API, and a DNS
//! server. They need no key; `guard.rs` decides which callers they serve. They are not part of API v1: no envelope, no
//! entry in the OpenAPI document.

mod dns;
mod guard;
mod mailpit;
mod message_out;
mod page;
mod problem;
mod query;

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{any, get};
use axum::{Router, middleware};
use postroad_delivery::{CaughtMessage, Inbox};
use serde_json::json;

use crate::envelope;
pub(crate) use dns::{DnsState, router as dns_router};
pub use guard::DevAccess;
pub(crate) use mailpit::router as mailpit_router;
use message_out::{SummaryOut, show_extracts, show_message};
use problem::Problem;
use query::{ListQuery, RequestedExtracts, WaitQuery};

/// Page for browsers; also served when mail leaves the machine and no inbox exists.
pub(crate) fn page_router(inbox: Option<Inbox>) -> Router {
    Router::new()
        .route("/dev", get(page::show).fallback(async || Problem::WrongMethod))
        .route("/dev/", get(page::show).fallback(async || Problem::WrongMethod))
        .layer(middleware::from_fn(guard::admit))
        .with_state(inbox)
}

pub(crate) fn router(inbox: Inbox) -> Router {
    Router::new()
        .route("/dev/messages", get(list).delete(clear).fallback(async || Problem::WrongMethod))
        .route("/dev/messages/wait", get(wait).fallback(async || Problem::WrongMethod))
        .route("/dev/messages/{id}", get(message).fallback(async || Problem::WrongMethod))
        .route("/dev/messages/{id}/raw", get(raw).fallback(async || Problem::WrongMethod))
        .route("/dev/messages/{id}/extract", get(extract).fallback(async || Problem::WrongMethod))
        .route("/dev/{*rest}", any(async || Problem::NothingHere))
        .layer(middleware::from_fn(guard::admit))
        .with_state(inbox)
}

async fn list(State(inbox): State<Inbox>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let limit = ListQuery::parse(query.as_deref())?.limit;
    let caught = inbox.list(limit);
    let messages: Vec<_> = caught.iter().map(|message| SummaryOut::of(message)).collect();
    Ok(envelope::json_response(StatusCode::OK, json!({ "messages": messages }).to_string()))
}

async fn clear(State(inbox): State<Inbox>) -> Response {
    envelope::json_response(StatusCode::OK, json!({ "deleted": inbox.clear() }).to_string())
}

async fn message(
    State(inbox): State<Inbox>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let requested = RequestedExtracts::parse(query.as_deref())?;
    show_message(find(&inbox, &id)?, requested).await
}

async fn extract(State(inbox): State<Inbox>, Path(id): Path<String>) -> Result<Response, Problem> {
    show_extracts(find(&inbox, &id)?).await
}

async fn raw(State(inbox): State<Inbox>, Path(id): Path<String>) -> Result<Response, Problem> {
    let mut response = Response::new(find(&inbox, &id)?.raw.clone().into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("message/rfc822"));
    // After a restart another message may have this id.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Waits for a message that matches, at most the requested time. The wait also ends when the client closes the
/// connection, because that drops the call.
async fn wait(State(inbox): State<Inbox>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let WaitQuery { matcher, extracts, time_max } = WaitQuery::parse(query.as_deref())?;
    match inbox.wait(&matcher, time_max).await {
        Some(message) => show_message(message, extracts).await,
        None => Err(Problem::TimeIsUp(time_max)),
    }
}

fn find(inbox: &Inbox, id: &str) -> Result<Arc<CaughtMessage>, Problem> {
    id.parse().ok().and_then(|id| inbox.find(id)).ok_or(Problem::NoSuchMessage)
}
