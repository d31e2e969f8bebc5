//! Writes the outcomes of posts, many in one transaction. While the store is unavailable, the settler keeps them and
//! retries; meanwhile workers with too many unstored outcomes start no further posts. An outcome that the store refuses
//! for another reason delays no others: it is stored without its attempt, or dropped.

use std::time::Duration;

use postroad_store::{Store, StoreError, WebhookOutcome};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Maximum number of outcomes in one transaction, which must not delay mail in SQLite's only writer.
const BATCH_OUTCOMES_MAX: usize = 64;
const WAITING_OUTCOMES_MAX: usize = 1_024;
const STORE_RETRY_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct Settler {
    sender: mpsc::Sender<UnstoredOutcome>,
}

#[derive(Debug)]
struct UnstoredOutcome {
    outcome: WebhookOutcome,
    /// Receives whether the outcome is stored.
    reply: oneshot::Sender<bool>,
}

impl Settler {
    /// Starts the settler's task, which ends when the last clone of `Settler` is dropped.
    pub(super) fn start(store: Store) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(WAITING_OUTCOMES_MAX);
        (Self { sender }, tokio::spawn(run(store, receiver)))
    }

    /// Waits until the outcome is on stable storage. Returns `false` if the store refused it, or on shutdown.
    pub(super) async fn settle(&self, outcome: WebhookOutcome) -> bool {
        let (reply, is_stored) = oneshot::channel();
        let is_sent = self.sender.send(UnstoredOutcome { outcome, reply }).await.is_ok();
        is_sent && is_stored.await.unwrap_or(false)
    }
}

async fn run(store: Store, mut receiver: mpsc::Receiver<UnstoredOutcome>) {
    let mut batch = Vec::with_capacity(BATCH_OUTCOMES_MAX);
    while receiver.recv_many(&mut batch, BATCH_OUTCOMES_MAX).await > 0 {
        let outcomes: Vec<WebhookOutcome> = batch.iter().map(|unstored| unstored.outcome.clone()).collect();
        let is_batch_stored = match retry_while_unavailable(|| store.settle_webhooks(outcomes.clone())).await
        {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(%error, "storing webhook results failed; storing them one by one");
                false
            }
        };
        for UnstoredOutcome { outcome, reply } in batch.drain(..) {
            let is_stored = is_batch_stored || store_alone(&store, outcome).await;
            // A worker that was aborted no longer listens.
            reply.send(is_stored).ok();
        }
    }
}

/// Stores one outcome, without its attempt if the store refuses the attempt. Returns whether it is stored.
async fn store_alone(store: &Store, outcome: WebhookOutcome) -> bool {
    let Err(error) = retry_while_unavailable(|| store.settle_webhooks(vec![outcome.clone()])).await else {
        return true;
    };
    let id = outcome.webhook_id.0;
    tracing::error!(%error, webhook.id = id, "storing a webhook result failed; storing it without the attempt");
    match retry_while_unavailable(|| store.settle_unrecorded_webhook(outcome.clone())).await {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, webhook.id = id, "storing a webhook result failed; its event is posted again");
            false
        }
    }
}

/// Calls `write` again until the store is available.
async fn retry_while_unavailable<F>(write: impl Fn() -> F) -> Result<(), StoreError>
where
    F: Future<Output = Result<(), StoreError>>,
{
    loop {
        match write().await {
            Err(error @ StoreError::Unavailable(_)) => {
                tracing::warn!(%error, "storing webhook results failed; retrying");
                tokio::time::sleep(STORE_RETRY_PAUSE).await;
            }
            written => return written,
        }
    }
}
