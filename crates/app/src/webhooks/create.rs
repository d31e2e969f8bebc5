//! Creates a webhook.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{WebhookFormat, WebhookUrl};
use postroad_store::{AuditSubject, NewWebhook, Webhook};

use super::WebhookRefusal;
use super::events::{EventFilter, resolve};
use super::new_secret;
use crate::access::Operation;
use crate::{App, Caller, FieldProblem};

/// Requested webhook, not checked yet.
#[derive(Debug, Clone)]
pub struct WebhookDraft {
    pub url: String,
    pub events: EventFilter,
    /// `standard` if absent.
    pub format: Option<String>,
    pub enabled: bool,
}

#[boxed_futures]
impl App {
    pub async fn create_webhook(
        &self,
        caller: &Caller,
        draft: WebhookDraft,
    ) -> Result<Webhook, WebhookRefusal> {
        let mut problems = Vec::new();
        let url = checked_url(&draft.url, &mut problems);
        let format = draft
            .format
            .as_deref()
            .map_or(Some(WebhookFormat::Standard), |text| checked_format(text, &mut problems));
        let events = resolve(&draft.events, format.unwrap_or(WebhookFormat::Standard), &mut problems);
        let (Some(url), Some(format), true) = (url, format, problems.is_empty()) else {
            return Err(WebhookRefusal::Validation(problems));
        };
        let store = &self.inner.store;
        let most = self.inner.webhooks_per_server;
        if store.list_webhooks(caller.server_id, None, most).await?.len() >= most {
            return Err(WebhookRefusal::TooMany);
        }
        let new = NewWebhook {
            server_id: caller.server_id,
            url: url.as_str().to_owned(),
            events,
            format,
            enabled: draft.enabled,
            secret: new_secret(),
        };
        let subject = AuditSubject::NewWebhook(caller.server_id, new.secret.clone());
        let store = self.recording(&caller.requester(), Operation::WebhooksCreate, subject);
        Ok(store.create_webhook(new).await?)
    }
}

pub(super) fn checked_url(text: &str, problems: &mut Vec<FieldProblem>) -> Option<WebhookUrl> {
    let url = WebhookUrl::parse(text);
    url.map_err(|error| problems.push(FieldProblem::new("/url", format!("`url`: {error}")))).ok()
}

pub(super) fn checked_format(text: &str, problems: &mut Vec<FieldProblem>) -> Option<WebhookFormat> {
    let format = WebhookFormat::parse(text);
    if format.is_none() {
        problems.push(FieldProblem::new("/format", "`format` should be `standard` or `postal`"));
    }
    format
}
