//! Writes what came of posts, many in one transaction. On failure: keeps them and tries again; lanes that wait for
//! their outcomes to be stored post nothing new meanwhile.

use std::time::Duration;

use postroad_store::{Store, WebhookOutcome};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Few enough for the SQLite writer not to keep mail waiting.
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
    /// It ends when the last clone is gone.
    pub(super) fn start(store: Store) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self { sender }, tokio::spawn(work(store, receiver)))
    }

    /// Until it is on stable storage.
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
            // A lane that was broken off does not listen any more.
            settling.stored.send(()).ok();
        }
    }
}
