//! Changes a webhook, posts a sample to it, or replays events.

use std::time::Duration;

use axum::extract::Path;
use postroad_app::access::Operation;
use postroad_app::{ReplayRequest, WebhookChanges};
use postroad_model::{EventKind, WebhookAttemptId, WebhookId};

use super::list::read_events;
use super::one;
use crate::answer::Answer;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::Form;

/// How far back events are replayed.
const REPLAYED_HOURS: [i64; 4] = [1, 6, 24, 7 * 24];
/// Each takes some ten thousand events.
const REPLAY_CALLS_MAX: usize = 20;

fn page(server: i64, id: i64, done: &str) -> String {
    format!("/servers/{server}/webhooks/{id}?done={done}")
}

pub(super) async fn update(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksUpdate).await?;
    let fields = &form.fields;
    let changes = WebhookChanges {
        url: fields.filled("url").map(ToOwned::to_owned),
        events: Some(read_events(fields)),
        format: None,
        enabled: Some(fields.is_ticked("enabled")),
    };
    form.visit.app().change_webhook(&caller, WebhookId(id), None, changes).await?;
    Ok(see_other(&page(server, id, "saved")))
}

/// Posts at once and shows the receiver's answer.
pub(super) async fn test(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksTest).await?;
    let webhook = form.visit.app().find_webhook(&caller, WebhookId(id)).await?;
    let kind = EventKind::parse(form.fields.text("event")).unwrap_or(EventKind::Delivered);
    let sample = form.visit.state.webhooks.test(webhook.server_id, webhook.id, kind).await?;
    let sample = sample.ok_or(Problem::NotFound)?;
    one::page_of(&form.visit, server, webhook, None, Some(sample)).await
}

pub(super) async fn replay(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksReplay).await?;
    let (app, webhook) = (form.visit.app(), WebhookId(id));
    if let Some(attempt) = form.fields.number("attempt") {
        let request = ReplayRequest::Attempt(WebhookAttemptId(attempt));
        app.replay_webhook(&caller, webhook, request).await?;
        return Ok(see_other(&page(server, id, "replayed")));
    }
    let hours = form.fields.number("hours").filter(|hours| REPLAYED_HOURS.contains(hours));
    let hours = hours.ok_or_else(|| Problem::Invalid("Choose how far back.".to_owned()))?;
    let until = app.now();
    let since = until.minus(Duration::from_hours(hours.unsigned_abs()));
    let mut after = None;
    for _ in 0..REPLAY_CALLS_MAX {
        let request = ReplayRequest::Between { since, until, after };
        after = app.replay_webhook(&caller, webhook, request).await?.continue_after;
        if after.is_none() {
            return Ok(see_other(&page(server, id, "replayed-all")));
        }
    }
    Ok(see_other(&page(server, id, "replayed-some")))
}

pub(super) async fn rotate_secret(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksRotateSecret).await?;
    let webhook = form.visit.app().rotate_webhook_secret(&caller, WebhookId(id)).await?;
    let secret = webhook.secret.0.clone();
    one::page_of(&form.visit, server, webhook, Some(secret), None).await
}

pub(super) async fn delete(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksDelete).await?;
    form.visit.app().delete_webhook(&caller, WebhookId(id)).await?;
    Ok(see_other(&format!("/servers/{server}/webhooks?done=removed")))
}
