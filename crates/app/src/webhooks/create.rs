//! Creates a webhook.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{WebhookFormat, WebhookId, WebhookUrl};
use postroad_store::{AuditSubject, NewWebhook, StoreError, Webhook};

use super::WebhookRefusal;
use super::events::{EventFilter, resolve};
use super::new_secret;
use crate::access::Operation;
use crate::accounts::{Created, CreationKey};
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
        key: Option<CreationKey>,
    ) -> Result<Created<Webhook>, WebhookRefusal> {
        let key = key.map(|key| key.of_server(caller.server_id));
        // Count before looking up the idempotency key. If the count includes the webhook of a concurrent call with the
        // same key, the look-up finds that webhook, so this call does not fail with `TooMany`.
        let webhooks_max = self.inner.webhooks_per_server;
        let webhooks =
            self.inner.store.list_webhooks(caller.server_id, None, None, webhooks_max).await?.len();
        if let Some(earlier) = self.find_earlier_webhook(caller, key.as_ref()).await? {
            return Ok(earlier);
        }
        let mut problems = Vec::new();
        let url = check_url(&draft.url, &mut problems);
        let format = draft
            .format
            .as_deref()
            .map_or(Some(WebhookFormat::Standard), |text| check_format(text, &mut problems));
        let events = resolve(&draft.events, format.unwrap_or(WebhookFormat::Standard), &mut problems);
        let (Some(url), Some(format), true) = (url, format, problems.is_empty()) else {
            return Err(WebhookRefusal::Validation(problems));
        };
        if webhooks >= webhooks_max {
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
        let creation = key.as_ref().map(|key| (caller.account_id, key));
        let store = self.audited_store_for_creation(
            &caller.requester(),
            Operation::WebhooksCreate,
            subject,
            creation,
        );
        let created = store.create_webhook(new).await;
        // A concurrent call with the same idempotency key may have created the webhook, and reached the ceiling with
        // it.
        if matches!(created, Err(StoreError::Conflict | StoreError::CeilingReached { .. }))
            && let Some(earlier) = self.find_earlier_webhook(caller, key.as_ref()).await?
        {
            return Ok(earlier);
        }
        Ok(Created { value: created?, is_replay: false })
    }

    /// The webhook that an earlier call with this idempotency key created.
    async fn find_earlier_webhook(
        &self,
        caller: &Caller,
        key: Option<&CreationKey>,
    ) -> Result<Option<Created<Webhook>>, WebhookRefusal> {
        let Some(id) = self.find_created_id_on_server(caller.account_id, key).await? else { return Ok(None) };
        let value = self.find_webhook(caller, WebhookId(id)).await?;
        Ok(Some(Created { value, is_replay: true }))
    }
}

pub(super) fn check_url(text: &str, problems: &mut Vec<FieldProblem>) -> Option<WebhookUrl> {
    let url = WebhookUrl::parse(text);
    url.map_err(|error| problems.push(FieldProblem::new("/url", format!("`url`: {error}")))).ok()
}

pub(super) fn check_format(text: &str, problems: &mut Vec<FieldProblem>) -> Option<WebhookFormat> {
    let format = WebhookFormat::parse(text);
    if format.is_none() {
        problems.push(FieldProblem::new("/format", "`format` should be `standard` or `postal`"));
    }
    format
}
