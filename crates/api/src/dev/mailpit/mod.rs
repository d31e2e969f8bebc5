//! Mailpit's API over the dev inbox, as far as test suites use it: reading, searching and deleting messages. Paths and
//! JSON are Mailpit's own, so that its clients work unchanged (docs/dev-inbox.md). Only `postroad dev` serves it.

mod change;
mod group;
mod inbox_state;
mod list_out;
mod message_out;
mod parsed_message;
mod search;

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use axum::{Router, middleware};
use postroad_app::without_loading_elements;
use postroad_delivery::Inbox;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::guard;
use super::problem::Problem;
use crate::{blocking_pool, envelope};
use group::Group;
use inbox_state::InboxState;
use list_out::{ListQuery, list_json};
use parsed_message::ParsedMessage;
use search::Search;

/// Maximum number of calls that read messages at the same time: each may read all messages.
const CALLS_MAX: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Mailpit {
    inbox: Inbox,
    inbox_state: InboxState,
    call_permits: Arc<Semaphore>,
}

pub(crate) fn router(inbox: Inbox) -> Router {
    let mailpit = Mailpit {
        inbox,
        inbox_state: InboxState::default(),
        call_permits: Arc::new(Semaphore::new(CALLS_MAX)),
    };
    let method_not_allowed = async || Problem::WrongMailpitMethod;
    Router::new()
        .route("/api/v1/info", get(info).fallback(method_not_allowed))
        .route("/api/v1/webui", get(async || configuration()).fallback(method_not_allowed))
        .route("/api/v1/tags", get(async || answer(&json!([]))).fallback(method_not_allowed))
        .route(
            "/api/v1/messages",
            get(list).put(change::set_read).delete(change::delete).fallback(method_not_allowed),
        )
        .route(
            "/api/v1/search",
            get(search).delete(change::delete_search_results).fallback(method_not_allowed),
        )
        .route("/api/v1/message/{id}", get(message).fallback(method_not_allowed))
        .route("/api/v1/message/{id}/headers", get(headers).fallback(method_not_allowed))
        .route("/api/v1/message/{id}/raw", get(raw).fallback(method_not_allowed))
        .route("/api/v1/message/{id}/part/{part}", get(part).fallback(method_not_allowed))
        .route("/view/{file}", get(view).fallback(method_not_allowed))
        // Health checks of containers.
        .route("/livez", get(async || StatusCode::OK).fallback(method_not_allowed))
        .route("/readyz", get(async || StatusCode::OK).fallback(method_not_allowed))
        .layer(middleware::from_fn(guard::admit))
        .with_state(mailpit)
}

impl Mailpit {
    /// Runs work that reads messages, on a blocking thread.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
        let permit = Arc::clone(&self.call_permits).acquire_owned().await.map_err(|_| Problem::Stopping)?;
        let work = move || {
            // Held until the work is done, even if the caller has gone.
            let _permit = permit;
            work()
        };
        blocking_pool::run_on_blocking_thread(work).await.map_err(|_| Problem::Stopping)
    }

    /// All messages as Mailpit shows them, newest first: a group has the copies of one send, one for each recipient.
    fn groups(&self) -> Vec<Group> {
        group::collect(&self.inbox.list(usize::MAX))
    }

    /// Finds a message by id; `latest` is the newest.
    fn find(&self, id: &str) -> Result<Group, Problem> {
        let mut groups = self.groups().into_iter();
        let found = if id == "latest" { groups.next() } else { groups.find(|group| group.has_id(id)) };
        found.ok_or(Problem::NoSuchMessage)
    }
}

async fn info(State(mailpit): State<Mailpit>) -> Response {
    let groups = mailpit.groups();
    let bytes: usize = groups.iter().map(|group| group.first().raw.len()).sum();
    answer(&json!({
        "Version": concat!("postroad-", env!("CARGO_PKG_VERSION")),
        "LatestVersion": "",
        "Database": "memory",
        "DatabaseSize": bytes,
        "Messages": groups.len(),
        "Unread": mailpit.inbox_state.count_unread(&groups),
        "Tags": {},
        "RuntimeStats": {
            "Uptime": mailpit.inbox_state.uptime_secs(),
            "Memory": bytes,
            "MessagesDeleted": mailpit.inbox_state.deleted_count(),
            "SMTPAccepted": groups.len(),
            "SMTPAcceptedSize": bytes,
            "SMTPRejected": 0,
            "SMTPIgnored": 0,
        },
    }))
}

fn configuration() -> Response {
    answer(&json!({
        "Label": "postroad",
        "MessageRelay": {
            "Enabled": false,
            "SMTPServer": "",
            "ReturnPath": "",
            "AllowedRecipients": "",
            "BlockedRecipients": "",
            "OverrideFrom": "",
            "PreserveMessageIDs": false,
        },
        "SpamAssassin": false,
        "ChaosEnabled": false,
        "DuplicatesIgnored": false,
        "HideDeleteAllButton": false,
    }))
}

async fn list(State(mailpit): State<Mailpit>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let page = ListQuery::parse(query.as_deref())?;
    let (groups, inbox_state) = (mailpit.groups(), mailpit.inbox_state.clone());
    let out = mailpit.run(move || list_json(&groups, &groups, &page, &inbox_state)).await?;
    Ok(answer(&out))
}

async fn search(State(mailpit): State<Mailpit>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let page = ListQuery::parse(query.as_deref())?;
    let search = Search::parse(&page.query)?;
    let (groups, inbox_state) = (mailpit.groups(), mailpit.inbox_state.clone());
    let out = mailpit
        .run(move || {
            let found = search.filter(&groups, &inbox_state);
            list_json(&groups, &found, &page, &inbox_state)
        })
        .await?;
    Ok(answer(&out))
}

/// Returns a message and marks it as read, as Mailpit does.
async fn message(State(mailpit): State<Mailpit>, Path(id): Path<String>) -> Result<Response, Problem> {
    let group = mailpit.find(&id)?;
    mailpit.inbox_state.set_read(&group, true);
    let out = mailpit.run(move || message_out::message_json(&group)).await?;
    Ok(answer(&out))
}

async fn headers(State(mailpit): State<Mailpit>, Path(id): Path<String>) -> Result<Response, Problem> {
    let group = mailpit.find(&id)?;
    let out = mailpit.run(move || message_out::headers(&ParsedMessage::new(&group))).await?;
    Ok(answer(&out))
}

async fn raw(State(mailpit): State<Mailpit>, Path(id): Path<String>) -> Result<Response, Problem> {
    let group = mailpit.find(&id)?;
    Ok(respond("text/plain; charset=utf-8", group.first().raw.clone()))
}

async fn part(
    State(mailpit): State<Mailpit>,
    Path((id, part)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let group = mailpit.find(&id)?;
    let found = mailpit.run(move || message_out::file_content(&ParsedMessage::new(&group), &part)).await?;
    let content = found.ok_or(Problem::NoSuchMessage)?;
    // The sender chose the type: a browser must not act on it.
    Ok(respond("application/octet-stream", content))
}

/// Shows a message as a page: `latest.html`, `7.html` or `7.txt`.
async fn view(State(mailpit): State<Mailpit>, Path(file): Path<String>) -> Result<Response, Problem> {
    let (id, kind) = file.rsplit_once('.').ok_or(Problem::NoSuchMessage)?;
    let is_html = match kind {
        "html" => true,
        "txt" => false,
        _ => return Err(Problem::NoSuchMessage),
    };
    let group = mailpit.find(id)?;
    let body = mailpit
        .run(move || {
            let body = message_out::body(&ParsedMessage::new(&group), is_html);
            if is_html { without_loading_elements(&body) } else { body }
        })
        .await?;
    let kind = if is_html { "text/html; charset=utf-8" } else { "text/plain; charset=utf-8" };
    let mut response = respond(kind, body);
    // HTML from outside: no scripts, no forms, nothing loaded from elsewhere.
    let policy = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'";
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    Ok(response)
}

fn answer(value: &Value) -> Response {
    envelope::json_response(StatusCode::OK, value.to_string())
}

fn respond(content_type: &'static str, body: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
