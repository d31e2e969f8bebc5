//! One webhook: its settings, and the attempts with the receiver's answers.

use askama::Template;
use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_app::shown_events;
use postroad_model::{WebhookAttemptId, WebhookId};
use postroad_store::{Webhook, WebhookAttempt};

use super::list::{events, kinds};
use crate::answer::{Answer, page};
use crate::layout::{Layout, Section};
use crate::query::query;
use crate::shown::{When, duration};
use crate::visit::Visit;

const PAGE_ROWS: usize = 25;

pub(super) struct AttemptRow {
    id: i64,
    at: When,
    event: &'static str,
    message: Option<i64>,
    number: u32,
    is_good: bool,
    status: Option<u16>,
    error: Option<String>,
    answer: String,
    took: String,
    next_attempt_at: Option<When>,
}

struct EventChoice {
    name: &'static str,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "webhooks/one.html")]
struct WebhookPage {
    layout: Layout,
    server: i64,
    id: i64,
    url: String,
    format: &'static str,
    events: String,
    is_enabled: bool,
    disabled_reason: Option<String>,
    failing_since: Option<When>,
    /// A new secret.
    secret: Option<String>,
    /// The sample that was just posted.
    sample: Option<AttemptRow>,
    choices: Vec<EventChoice>,
    attempts: Vec<AttemptRow>,
    next: Option<String>,
}

pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::WebhooksGet).await?;
    let webhook = visit.app().find_webhook(&caller, WebhookId(id)).await?;
    page_of(&visit, server, webhook, None, None).await
}

pub(super) async fn page_of(
    visit: &Visit,
    server: i64,
    webhook: Webhook,
    secret: Option<String>,
    sample: Option<WebhookAttempt>,
) -> Answer {
    let caller = visit.caller(server, Operation::WebhooksAttempts).await?;
    let (_, layout) = visit.server_layout(server, "Webhook", Section::Webhooks).await?;
    let before = visit.query.number("before").map(WebhookAttemptId);
    let (attempts, has_more) =
        visit.app().list_webhook_attempts(&caller, webhook.id, before, PAGE_ROWS).await?;
    let next = attempts.last().filter(|_| has_more).map(|last| query(&[("before", &last.id.to_string())]));
    let chosen = shown_events(webhook.events, webhook.format);
    let is_chosen =
        |name: &str| chosen.as_ref().is_some_and(|kinds| kinds.iter().any(|kind| kind.as_str() == name));
    page(&WebhookPage {
        layout,
        server,
        id: webhook.id.0,
        format: webhook.format.as_str(),
        events: events(&webhook),
        is_enabled: webhook.enabled,
        disabled_reason: webhook.disabled_reason,
        failing_since: webhook.failing_since.map(When),
        url: webhook.url,
        secret,
        sample: sample.map(attempt_row),
        choices: kinds().into_iter().map(|name| EventChoice { name, is_chosen: is_chosen(name) }).collect(),
        attempts: attempts.into_iter().map(attempt_row).collect(),
        next,
    })
}

fn attempt_row(attempt: WebhookAttempt) -> AttemptRow {
    let WebhookAttempt { id, attempt, next_attempt_at, .. } = attempt;
    AttemptRow {
        id: id.0,
        at: When(attempt.at),
        event: attempt.kind.as_str(),
        message: Some(attempt.message_id.0).filter(|id| *id != 0),
        number: attempt.number,
        is_good: attempt.error_class.is_none(),
        status: attempt.status,
        error: attempt.error,
        answer: attempt.answer,
        took: duration(attempt.duration_us),
        next_attempt_at: next_attempt_at.map(When),
    }
}
