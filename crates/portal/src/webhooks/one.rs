//! One webhook: its settings, and the attempts with the receiver's answers.

use askama::Template;
use aws_lc_rs::digest::{Context, SHA256};
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use postroad_app::access::Operation;
use postroad_app::events_unless_all;
use postroad_model::{WebhookAttemptId, WebhookFormat, WebhookId};
use postroad_store::{Webhook, WebhookAttempt};

use super::filter::Filters;
use super::list::{events, kinds};
use crate::answer::{Answer, page_with_status};
use crate::display::{When, counted, duration};
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::text_budget::TextBudget;
use crate::visit::Visit;

const PAGE_ROWS: usize = 25;
/// Maximum bytes of an answer, or of the text about an error, in the list; the page of a single attempt shows them in
/// full.
const TEXT_BYTES_MAX: usize = 1_500;
/// Bytes of the hash that identifies a secret: enough to tell secrets apart, too few to reveal one.
const MARK_BYTES: usize = 9;

/// Result of the last form, in addition to the page itself.
#[derive(Default)]
pub(super) struct Outcome {
    /// A new secret, shown only this time.
    pub(super) secret: Option<String>,
    /// The sample that was just posted.
    pub(super) sample: Option<WebhookAttempt>,
    /// Error of the form with the settings.
    pub(super) problem: Option<String>,
}

/// A replay that stopped before its end, for the form that continues it.
struct ReplayRest {
    since: i64,
    until: i64,
    after: i64,
    replayed: u64,
}

impl ReplayRest {
    fn of(visit: &Visit) -> Option<Self> {
        let number = |name: &str| visit.query.number(name);
        let replayed = u64::try_from(number("replayed")?).ok()?;
        let (since, until) = (number("replay_since")?, number("replay_until")?);
        Some(Self { since, until, after: number("after")?, replayed })
    }

    fn events(&self) -> String {
        counted(self.replayed, "event")
    }
}

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
    /// Whether `error` or `answer` is cut.
    is_cut: bool,
    took: String,
    next_attempt_at: Option<When>,
}

struct FormatChoice {
    value: &'static str,
    is_chosen: bool,
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
    formats: Vec<FormatChoice>,
    /// Incremented by every change, so that a form does not undo somebody else's change.
    version: i64,
    problem: Option<String>,
    events: String,
    is_enabled: bool,
    disabled_reason: Option<String>,
    failing_since: Option<When>,
    /// A new secret.
    secret: Option<String>,
    /// Identifies the current secret without showing it.
    secret_mark: String,
    /// The sample that was just posted.
    sample: Option<AttemptRow>,
    replay_rest: Option<ReplayRest>,
    choices: Vec<EventChoice>,
    attempts: Vec<AttemptRow>,
    filters: Filters,
    next: Option<String>,
    /// Whether one attempt is shown in full.
    is_single: bool,
}

pub(super) async fn show(Path((server, id)): Path<(i64, i64)>, visit: Visit) -> Answer {
    let caller = visit.caller(server, Operation::WebhooksGet).await?;
    let webhook = visit.app().find_webhook(&caller, WebhookId(id)).await?;
    page_of(&visit, server, webhook, Outcome::default()).await
}

/// A short hash of the current secret.
pub(super) fn secret_mark(webhook: &Webhook) -> String {
    let mut context = Context::new(&SHA256);
    context.update(b"postroad webhook secret\0");
    context.update(webhook.secret.0.as_bytes());
    URL_SAFE_NO_PAD.encode(&context.finish().as_ref()[..MARK_BYTES])
}

pub(super) async fn page_of(visit: &Visit, server: i64, webhook: Webhook, outcome: Outcome) -> Answer {
    let Outcome { secret, sample, problem } = outcome;
    let caller = visit.caller(server, Operation::WebhooksAttempts).await?;
    let (_, layout) = visit.server_layout(server, "Webhook", Section::Webhooks).await?;
    let single = visit.query.number("attempt");
    // A single attempt is the newest one before the next id.
    let before = single.map(|id| id.saturating_add(1)).or_else(|| visit.query.number("before"));
    let before = before.map(WebhookAttemptId);
    let filters = Filters::read(&visit.query, &visit.zone);
    let found = visit
        .app()
        .search_webhook_attempts(
            &caller,
            webhook.id,
            filters.selection(),
            before,
            if single.is_some() { 1 } else { PAGE_ROWS },
        )
        .await?;
    let mut budget = TextBudget::default();
    let bytes_max = if single.is_some() { usize::MAX } else { TEXT_BYTES_MAX };
    let next = found.before.map(|before| filters.query(&before.to_string()));
    let chosen = events_unless_all(webhook.events, webhook.format);
    let is_chosen =
        |name: &str| chosen.as_ref().is_some_and(|kinds| kinds.iter().any(|kind| kind.as_str() == name));
    let formats = WebhookFormat::ALL
        .map(|format| FormatChoice { value: format.as_str(), is_chosen: format == webhook.format });
    let status = if problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let shown = WebhookPage {
        layout,
        server,
        id: webhook.id.0,
        format: webhook.format.as_str(),
        formats: formats.into(),
        version: webhook.version,
        problem,
        events: events(&webhook),
        secret_mark: secret_mark(&webhook),
        is_enabled: webhook.enabled,
        disabled_reason: webhook.disabled_reason,
        failing_since: webhook.failing_since.map(When),
        url: webhook.url,
        secret,
        sample: sample.map(|attempt| attempt_row(attempt, &mut TextBudget::default(), usize::MAX)),
        replay_rest: ReplayRest::of(visit),
        choices: kinds().into_iter().map(|name| EventChoice { name, is_chosen: is_chosen(name) }).collect(),
        attempts: found
            .attempts
            .into_iter()
            .filter(|attempt| single.is_none_or(|id| attempt.id.0 == id))
            .map(|attempt| attempt_row(attempt, &mut budget, bytes_max))
            .collect(),
        filters,
        next: next.filter(|_| single.is_none()),
        is_single: single.is_some(),
    };
    page_with_status(status, &shown)
}

fn attempt_row(attempt: WebhookAttempt, budget: &mut TextBudget, bytes_max: usize) -> AttemptRow {
    let WebhookAttempt { id, attempt, next_attempt_at, .. } = attempt;
    // A stored answer has at most 4 KiB, so it fits in full on the page of a single attempt.
    let error = attempt.error.map(|error| budget.take(&error, bytes_max));
    let (answer, is_whole) = budget.take(&attempt.answer, bytes_max);
    AttemptRow {
        id: id.0,
        at: When(attempt.at),
        event: attempt.kind.as_str(),
        message: Some(attempt.message_id.0).filter(|id| *id != 0),
        number: attempt.number,
        is_good: attempt.error_class.is_none(),
        status: attempt.status,
        is_cut: !is_whole || error.as_ref().is_some_and(|(_, is_whole)| !is_whole),
        error: error.map(|(text, _)| text),
        answer,
        took: duration(attempt.duration_us),
        next_attempt_at: next_attempt_at.map(When),
    }
}
