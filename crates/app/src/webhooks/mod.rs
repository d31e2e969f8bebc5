//! Webhooks of a server: endpoints to which its events are posted.

mod change;
mod create;
mod events;
mod refusal;
mod replay;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{WebhookAttemptId, WebhookId};
use postroad_store::{
    AuditSubject, StoreError, Webhook, WebhookAttempt, WebhookAttemptFilter, WebhookAttemptPage,
    WebhookSecret,
};
use rand::RngCore as _;

pub use change::WebhookChanges;
pub use create::WebhookDraft;
pub use events::{EventFilter, events_unless_all};
pub use refusal::WebhookRefusal;
pub use replay::ReplayRequest;

use crate::access::Operation;
use crate::{App, Caller};

/// Maximum number of attempts that one call of a search examines.
const SCANNED_MAX: usize = 5_000;
/// The old secret also signs for this long after a rotation.
const PREVIOUS_SECRET_LIFETIME: Duration = Duration::from_hours(24);
/// Length of a secret; Standard Webhooks requires 24 to 64 bytes.
const SECRET_BYTES: usize = 32;

#[boxed_futures]
impl App {
    pub async fn find_webhook(&self, caller: &Caller, id: WebhookId) -> Result<Webhook, WebhookRefusal> {
        let found = self.inner.store.find_webhook(caller.server_id, id).await?;
        found.ok_or(WebhookRefusal::NotFound)
    }

    /// Returns a page ordered by id, and whether there are more.
    pub async fn list_webhooks(
        &self,
        caller: &Caller,
        url_part: Option<&str>,
        after: Option<WebhookId>,
        limit: usize,
    ) -> Result<(Vec<Webhook>, bool), WebhookRefusal> {
        let found = self.inner.store.list_webhooks(caller.server_id, url_part, after, limit + 1).await?;
        Ok(page_of(found, limit))
    }

    pub async fn delete_webhook(&self, caller: &Caller, id: WebhookId) -> Result<(), WebhookRefusal> {
        let subject = AuditSubject::Webhook(caller.server_id, id);
        let store = self.audited_store(&caller.requester(), Operation::WebhooksDelete, subject);
        Ok(store.delete_webhook(caller.server_id, id).await?)
    }

    /// Creates a new secret; the old secret also signs for a day. If `replaces` is set but is no longer the webhook's
    /// secret, changes nothing and returns `None`.
    pub async fn rotate_webhook_secret(
        &self,
        caller: &Caller,
        id: WebhookId,
        replaces: Option<WebhookSecret>,
    ) -> Result<Option<Webhook>, WebhookRefusal> {
        let until = self.inner.clock.now().plus(PREVIOUS_SECRET_LIFETIME);
        let subject = AuditSubject::Webhook(caller.server_id, id);
        let store = self.audited_store(&caller.requester(), Operation::WebhooksRotateSecret, subject);
        let rotated = store.rotate_webhook_secret(caller.server_id, id, new_secret(), replaces, until);
        match rotated.await {
            Err(StoreError::Conflict) => Ok(None),
            rotated => Ok(Some(rotated?)),
        }
    }

    /// Returns a page of attempts, newest first, and whether there are more.
    pub async fn list_webhook_attempts(
        &self,
        caller: &Caller,
        id: WebhookId,
        before: Option<WebhookAttemptId>,
        limit: usize,
    ) -> Result<(Vec<WebhookAttempt>, bool), WebhookRefusal> {
        let store = &self.inner.store;
        let found = store.list_webhook_attempts(caller.server_id, id, before, limit + 1).await?;
        if found.is_empty() {
            // Tell a webhook without attempts from an unknown one.
            self.find_webhook(caller, id).await?;
        }
        Ok(page_of(found, limit))
    }

    /// Attempts that a filter selects, newest first. One call examines at most `SCANNED_MAX` attempts; `before` of the
    /// answer says where the next call continues.
    pub async fn search_webhook_attempts(
        &self,
        caller: &Caller,
        id: WebhookId,
        filter: WebhookAttemptFilter,
        before: Option<WebhookAttemptId>,
        limit: usize,
    ) -> Result<WebhookAttemptPage, WebhookRefusal> {
        let webhook = (caller.server_id, id);
        let store = &self.inner.store;
        Ok(store.search_webhook_attempts(webhook, filter, before, limit, SCANNED_MAX).await?)
    }
}

fn page_of<T>(mut found: Vec<T>, limit: usize) -> (Vec<T>, bool) {
    let has_more = found.len() > limit;
    found.truncate(limit);
    (found, has_more)
}

/// A new secret: `whsec_` and base64; shown only once.
fn new_secret() -> WebhookSecret {
    let mut bytes = [0; SECRET_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    WebhookSecret(format!("whsec_{}", STANDARD.encode(bytes)))
}
