//! Changes a webhook. `enabled: true` also resets the webhook's failures.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{EventKind, WebhookId};
use postroad_store::{AuditSubject, UpdateResult, Webhook, WebhookChange};

use super::WebhookRefusal;
use super::create::{check_format, check_url};
use super::events::{EventFilter, events_of_format, resolve};
use crate::access::Operation;
use crate::{App, Caller, FieldProblem};

/// Requested changes; `None` keeps a setting.
#[derive(Debug, Clone, Default)]
pub struct WebhookChanges {
    pub url: Option<String>,
    pub events: Option<EventFilter>,
    pub format: Option<String>,
    pub enabled: Option<bool>,
}

#[boxed_futures]
impl App {
    pub async fn change_webhook(
        &self,
        caller: &Caller,
        id: WebhookId,
        if_version: Option<i64>,
        changes: WebhookChanges,
    ) -> Result<Webhook, WebhookRefusal> {
        let before = self.find_webhook(caller, id).await?;
        let mut problems = Vec::new();
        let url = changes.url.as_deref().and_then(|url| check_url(url, &mut problems));
        let format = changes.format.as_deref().and_then(|text| check_format(text, &mut problems));
        let new_format = format.unwrap_or(before.format);
        let rechecks_events = changes.events.is_none() && new_format != before.format;
        let filter = changes.events.or_else(|| rechecks_events.then(|| current_filter(&before)));
        let problems_before = problems.len();
        let events = filter.map(|events| resolve(&events, new_format, &mut problems));
        if rechecks_events && problems.len() > problems_before {
            // The new format cannot express the events that the webhook has.
            problems.push(FieldProblem::new("/format", "`events` must be given with the new `format`"));
        }
        if !problems.is_empty() {
            return Err(WebhookRefusal::Validation(problems));
        }
        let change = WebhookChange {
            url: url.map(|url| url.as_str().to_owned()),
            events,
            format,
            enabled: changes.enabled,
        };
        let subject = AuditSubject::Webhook(caller.server_id, id);
        let store = self.audited_store(&caller.requester(), Operation::WebhooksUpdate, subject);
        match store.change_webhook(caller.server_id, id, if_version, change).await? {
            UpdateResult::Done(webhook) => Ok(webhook),
            UpdateResult::OtherVersion(version) => Err(WebhookRefusal::OtherVersion(version)),
        }
    }
}

/// Current event filter of a webhook, to be interpreted for another format.
fn current_filter(webhook: &Webhook) -> EventFilter {
    if webhook.events == events_of_format(webhook.format) {
        return EventFilter::All;
    }
    let wanted = EventKind::ALL.iter().filter(|kind| webhook.events.contains(**kind));
    EventFilter::Named(wanted.map(|kind| kind.as_str().to_owned()).collect())
}
