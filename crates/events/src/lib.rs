//! Webhooks: bodies of events, their signatures, and the worker that posts them.
//!
//! The worker must never delay mail: it reads the outbox that other transactions filled, and writes outcomes in
//! small batches. On failure an event stays in the outbox and is posted later with the same bytes, until its retries
//! end, or its webhook is disabled or deleted.

pub mod body;
mod pacing;
mod post;
mod retry;
mod sample;
mod signature;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{Clock, EventKind, ServerId, WebhookId};
use postroad_net::guarded_http::GuardedHttp;
use postroad_store::{Store, StoreError, Webhook, WebhookAttempt, WebhookNext, WebhookOutcome};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use post::{PostResult, Poster};
pub use retry::RetrySettings;
pub use sample::sample;
pub use signature::{PostalSigner, PostalSignerError, SecretError, StandardSecret};

/// When the worker stops, posts in progress may take this long to finish. Then they are aborted, and repeated by
/// another node or after the next start.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Maximum number of concurrent posts to one endpoint that answers well.
    pub concurrency_max: usize,
    pub retry: RetrySettings,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self { concurrency_max: 8, retry: RetrySettings::default() }
    }
}

/// Running worker. Call `stop` to end it. Dropping this value only requests the stop: posts in progress finish in the
/// background.
#[derive(Debug)]
pub struct WebhookWorker {
    tester: WebhookTester,
    stop: StopOnDrop,
    task: JoinHandle<()>,
}

/// Tells the worker to stop when this value is dropped.
#[derive(Debug)]
struct StopOnDrop(watch::Sender<bool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

#[boxed_futures]
impl WebhookWorker {
    pub fn start(
        store: Store,
        clock: Arc<dyn Clock>,
        http: GuardedHttp,
        signer: Arc<PostalSigner>,
        settings: WebhookSettings,
    ) -> Self {
        let poster = Poster::new(http, signer, Arc::clone(&clock));
        let tester = WebhookTester { store: store.clone(), poster: poster.clone() };
        let (stop, stopping) = watch::channel(false);
        let task = tokio::spawn(worker::run(store, clock, poster, settings, stopping));
        Self { tester, stop: StopOnDrop(stop), task }
    }

    /// Handle that entry points use to test webhooks.
    pub fn tester(&self) -> WebhookTester {
        self.tester.clone()
    }

    /// Ends the worker within `STOP_TIME_MAX` and releases its claims.
    pub async fn stop(self) {
        drop(self.stop);
        let mut task = self.task;
        if tokio::time::timeout(STOP_TIME_MAX, &mut task).await.is_ok() {
            return;
        }
        task.abort();
        // Aborting the task aborts its posts too. Their claims are released, so that another node may repeat them at
        // once.
        drop(task.await);
        if let Err(error) = self.tester.store.release_webhook_claims().await {
            tracing::debug!(%error, "releasing claims of webhooks failed; they expire after two minutes");
        }
    }
}

/// Handle for entry points: posts samples, and shows the public key.
#[derive(Debug, Clone)]
pub struct WebhookTester {
    store: Store,
    poster: Poster,
}

#[boxed_futures]
impl WebhookTester {
    pub fn signer(&self) -> &PostalSigner {
        self.poster.signer()
    }

    /// Posts a sample event at once and records the attempt. `None` if the webhook does not exist.
    pub async fn test(
        &self,
        server_id: ServerId,
        id: WebhookId,
        kind: EventKind,
    ) -> Result<Option<WebhookAttempt>, StoreError> {
        let Some(webhook) = self.store.find_webhook(server_id, id).await? else { return Ok(None) };
        let event = sample(server_id, self.store.ids()?.next(), kind, self.poster.now());
        let event_id = event.id;
        let (earlier_attempts, never) = (0, std::future::pending());
        let post = self.poster.post(&webhook, event, earlier_attempts, never).await;
        self.record(&webhook, post).await?;
        Ok(self.store.list_event_attempts(server_id, event_id, 1).await?.into_iter().next())
    }

    async fn record(&self, webhook: &Webhook, post: PostResult) -> Result<(), StoreError> {
        let outcome = WebhookOutcome {
            server_id: webhook.server_id,
            webhook_id: webhook.id,
            attempt: post.attempt,
            next: WebhookNext::Nothing,
        };
        self.store.settle_webhooks(vec![outcome]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_worker_stops() {
        let (stop, stopping) = watch::channel(false);
        drop(StopOnDrop(stop));
        assert!(*stopping.borrow());
    }
}
