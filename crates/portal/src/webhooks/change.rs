//! Changes or deletes a webhook, replaces its secret, posts a sample to it, or replays events.

use std::time::Duration;

use postroad_app::access::Operation;
use postroad_app::{ReplayRequest, WebhookChanges};
use postroad_model::{EventId, EventKind, Timestamp, WebhookAttemptId, WebhookId};

use super::list::read_events;
use super::one::{self, Outcome, secret_mark};
use crate::answer::Answer;
use crate::fields::Fields;
use crate::path::Path;
use crate::problem::Problem;
use crate::query::query;
use crate::redirect::see_other;
use crate::visit::Form;

/// Hours that a replay can go back, as choices of the form.
const REPLAYED_HOURS: [i64; 4] = [1, 6, 24, 7 * 24];

fn page_path(server: i64, id: i64, done: &str) -> String {
    format!("/servers/{server}/webhooks/{id}?done={done}")
}

pub(super) async fn update(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksUpdate).await?;
    let (app, fields) = (form.visit.app(), &form.fields);
    let changes = WebhookChanges {
        url: fields.filled("url").map(ToOwned::to_owned),
        events: Some(read_events(fields)),
        format: fields.filled("format").map(ToOwned::to_owned),
        enabled: Some(fields.is_ticked("enabled")),
    };
    match app.change_webhook(&caller, WebhookId(id), fields.number("version"), changes).await {
        Ok(_) => Ok(see_other(&page_path(server, id, "saved"))),
        Err(refusal) => {
            let problem = Some(Problem::from(refusal).into_form_text()?);
            let webhook = app.find_webhook(&caller, WebhookId(id)).await?;
            one::page_of(&form.visit, server, webhook, Outcome { problem, ..Outcome::default() }).await
        }
    }
}

/// Posts a sample at once and shows the receiver's answer.
pub(super) async fn post_sample(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksTest).await?;
    let webhook = form.visit.app().find_webhook(&caller, WebhookId(id)).await?;
    let kind = EventKind::parse(form.fields.text("event")).unwrap_or(EventKind::Delivered);
    let _permit = form.visit.state.work.sample(form.visit.person.user.account_id).await?;
    let sample = form.visit.state.webhooks.test(webhook.server_id, webhook.id, kind).await?;
    let sample = sample.ok_or(Problem::NotFound)?;
    one::page_of(&form.visit, server, webhook, Outcome { sample: Some(sample), ..Outcome::default() }).await
}

/// Replays one event, or all events of a time range. One request queues at most 50,000 events; the page then offers to
/// continue.
pub(super) async fn replay(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksReplay).await?;
    let (app, webhook) = (form.visit.app(), WebhookId(id));
    if let Some(attempt) = form.fields.number("attempt") {
        let request = ReplayRequest::Attempt(WebhookAttemptId(attempt));
        app.replay_webhook(&caller, webhook, request).await?;
        return Ok(see_other(&page_path(server, id, "replayed")));
    }
    if let Some(event) = form.fields.filled("event") {
        let event = event
            .trim_start_matches("evt_")
            .parse()
            .map_err(|_| Problem::Invalid("The id of an event is a number.".to_owned()))?;
        app.replay_webhook(&caller, webhook, ReplayRequest::Event(EventId(event))).await?;
        return Ok(see_other(&page_path(server, id, "replayed")));
    }
    let (since, until, after) = read_range(&form.fields, app.now())?;
    let request = ReplayRequest::Between { since, until, after };
    let replayed = app.replay_webhook(&caller, webhook, request).await?;
    let Some(after) = replayed.continue_after else {
        return Ok(see_other(&page_path(server, id, "replayed-all")));
    };
    let replayed_before = form.fields.number("replayed").and_then(|number| u64::try_from(number).ok());
    let progress = query(&[
        ("replay_since", &since.as_micros().to_string()),
        ("replay_until", &until.as_micros().to_string()),
        ("after", &after.to_string()),
        ("replayed", &replayed_before.unwrap_or(0).saturating_add(replayed.events).to_string()),
    ]);
    Ok(see_other(&format!("/servers/{server}/webhooks/{id}{progress}")))
}

/// Reads the range: the field `hours`, or the times `from` and `to`, or `since`, `until` and `after` of a replay that
/// continues.
fn read_range(fields: &Fields, now: Timestamp) -> Result<(Timestamp, Timestamp, Option<EventId>), Problem> {
    let moment = |name: &str| fields.number(name).map(Timestamp::from_micros);
    if let (Some(since), Some(until), Some(after)) =
        (moment("since"), moment("until"), fields.number("after"))
    {
        return Ok((since, until, Some(EventId(after))));
    }
    if fields.filled("from_utc").is_some() || fields.filled("to_utc").is_some() {
        let wrong = || Problem::Invalid("Choose both times: from when, and until when.".to_owned());
        let from = read_moment(fields, "from").ok_or_else(wrong)?;
        let to = read_moment(fields, "to").ok_or_else(wrong)?;
        return Ok((from, to, None));
    }
    let hours = fields.number("hours").filter(|hours| REPLAYED_HOURS.contains(hours));
    let hours = hours.ok_or_else(|| Problem::Invalid("Choose how far back.".to_owned()))?;
    Ok((now.minus(Duration::from_hours(hours.unsigned_abs())), now, None))
}

/// Reads a time: from the field that the script fills after converting it from the reader's time zone, else from the
/// form's own field, in UTC.
fn read_moment(fields: &Fields, name: &str) -> Option<Timestamp> {
    let text = match fields.filled(name) {
        Some(text) => text.to_owned(),
        None => format!("{}:00Z", fields.filled(&format!("{name}_utc"))?),
    };
    Timestamp::parse_rfc3339(&text)
}

/// Creates a new secret. The form names the secret that it replaces, so that sending it twice creates only one: a
/// second rotation would end the secret that the receiver still has.
pub(super) async fn rotate_secret(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksRotateSecret).await?;
    let app = form.visit.app();
    let current = app.find_webhook(&caller, WebhookId(id)).await?;
    if form.fields.text("secret_mark") != secret_mark(&current) {
        return Ok(see_other(&page_path(server, id, "rotated-before")));
    }
    let replaces = Some(current.secret);
    let Some(webhook) = app.rotate_webhook_secret(&caller, WebhookId(id), replaces).await? else {
        return Ok(see_other(&page_path(server, id, "rotated-before")));
    };
    let secret = Some(webhook.secret.0.clone());
    one::page_of(&form.visit, server, webhook, Outcome { secret, ..Outcome::default() }).await
}

pub(super) async fn delete(Path((server, id)): Path<(i64, i64)>, form: Form) -> Answer {
    let caller = form.visit.caller(server, Operation::WebhooksDelete).await?;
    form.visit.app().delete_webhook(&caller, WebhookId(id)).await?;
    Ok(see_other(&format!("/servers/{server}/webhooks?done=removed")))
}
