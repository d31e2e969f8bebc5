//! Writes the outcomes of posts, many in one transaction. On failure it keeps them and retries; meanwhile workers
//! with too many unstored outcomes start no further posts.

use std::time::Duration;

use postroad_store::{Store, WebhookOutcome};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Maximum number of outcomes in one transaction, which must not delay mail in SQLite's only writer.
const BATCH_MAX: usize = 64;
const WAITING_MAX: usize = 1_024;
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct Settler {
    sender: mpsc::Sender<Settling>,
}

#[derive(Debug)]
struct Settling {
    outcome: WebhookOutcome,
    stored: oneshot::Sender<()>,
}

impl Settler {
    /// Starts the settler; it ends when the last clone is dropped.
    pub(super) fn start(store: Store) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self { sender }, tokio::spawn(work(store, receiver)))
    }

    /// Waits until the outcome is on stable storage.
    pub(super) async fn settle(&self, outcome: WebhookOutcome) {
        let (stored, is_stored) = oneshot::channel();
        if self.sender.send(Settling { outcome, stored }).await.is_ok() {
            drop(is_stored.await);
        }
    }
}

async fn work(store: Store, mut receiver: mpsc::Receiver<Settling>) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while receiver.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let outcomes: Vec<WebhookOutcome> = batch.iter().map(|settling| settling.outcome.clone()).collect();
        while let Err(error) = store.settle_webhooks(outcomes.clone()).await {
            tracing::warn!(%error, "storing webhook results failed; retrying");
            tokio::time::sleep(TROUBLE_PAUSE).await;
        }
        for settling in batch.drain(..) {
            // A worker that was aborted no longer listens.
            settling.stored.send(()).ok();
        }
    }
}
