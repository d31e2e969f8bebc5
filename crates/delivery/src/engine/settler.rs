//! Outcomes into the store, many in one transaction. While they cannot be stored, nothing more is sent.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::Status;
use postroad_store::{Outcome, StoreError};
use tokio::sync::mpsc;

use super::Hub;
use crate::attempt::settle::Settlement;

const BATCH_MAX: usize = 512;
/// Outcomes that may wait to be stored.
pub(crate) const WAITING_MAX: usize = 2_048;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Settler {
    settlements: mpsc::Receiver<Settlement>,
}

impl Settler {
    pub(crate) fn new() -> (mpsc::Sender<Settlement>, Self) {
        let (sender, settlements) = mpsc::channel(WAITING_MAX);
        (sender, Self { settlements })
    }

    /// Until the engine has stopped and everything is stored.
    pub(crate) async fn run(mut self, hub: Arc<Hub>, mut until: mpsc::Receiver<()>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut is_last_round = false;
        loop {
            tokio::select! {
                biased;
                count = self.settlements.recv_many(&mut batch, BATCH_MAX) => {
                    if count == 0 {
                        return;
                    }
                    store_all(&hub, std::mem::take(&mut batch)).await;
                }
                // All tasks that could bring more are done.
                _ = until.recv(), if !is_last_round => {
                    is_last_round = true;
                    self.settlements.close();
                }
            }
        }
    }
}

async fn store_all(hub: &Arc<Hub>, batch: Vec<Settlement>) {
    let outcomes: Vec<Outcome> = batch.iter().map(|settlement| settlement.outcome.clone()).collect();
    let mut is_paused = false;
    let settled = loop {
        match hub.store.finish(outcomes.clone()).await {
            Ok(settled) => break settled,
            Err(error @ StoreError::Unavailable(_)) => {
                tracing::error!(%error, outcomes = batch.len(), "outcomes cannot be stored; delivery waits");
                hub.with(|schedule, now| {
                    schedule.set_paused(Some(format!("outcomes cannot be stored ({error})")), now);
                });
                is_paused = true;
                if hub.is_stopping() {
                    // The journal has them, and the next start settles them.
                    return;
                }
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
            Err(error) if batch.len() > 1 => {
                tracing::error!(%error, "a batch of outcomes was refused; storing them one by one");
                for settlement in batch {
                    Box::pin(store_all(hub, vec![settlement])).await;
                }
                return;
            }
            Err(error) => {
                let outcome = &batch[0].outcome;
                tracing::error!(message.id = %outcome.message_id, %error, "an outcome was refused");
                return;
            }
        }
    };
    if is_paused {
        hub.with(|schedule, now| schedule.set_paused(None, now));
    }
    conclude(hub, batch, &settled);
}

/// The outcomes are on stable storage.
fn conclude(hub: &Arc<Hub>, batch: Vec<Settlement>, settled: &[bool]) {
    hub.journal.settled(batch.iter().filter_map(|settlement| settlement.flight));
    hub.with(|schedule, now| {
        for (settlement, settled) in batch.into_iter().zip(settled) {
            let is_sent = settlement.outcome.delivery.status == Status::Sent;
            hub.no_longer_in_flight(settlement.outcome.key());
            if let Some(source) = settlement.source {
                schedule.settled(source, is_sent);
            }
            if let Some(retry) = settlement.retry.filter(|_| *settled) {
                schedule.add(retry.domain, retry.require_tls, retry.entry, now);
            }
        }
    });
}
