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
    let settled = settle_again(hub, &batch, settled).await;
    conclude(hub, batch, &settled);
}

/// A node that lost its lease for a moment no longer holds its claims. What it sent has to be recorded all the same, or
/// it would be sent again.
async fn settle_again(hub: &Arc<Hub>, batch: &[Settlement], mut settled: Vec<bool>) -> Vec<bool> {
    let lost: Vec<usize> =
        (0..batch.len()).filter(|at| !settled[*at] && batch[*at].flight.is_some()).collect();
    if lost.is_empty() {
        return settled;
    }
    let keys = lost.iter().map(|at| batch[*at].outcome.key()).collect();
    let adopted = hub.store.adopt(keys).await.unwrap_or_default();
    let is_ours = |at: &usize| {
        let flight = batch[*at].flight;
        adopted.iter().any(|claimed| {
            claimed.key() == batch[*at].outcome.key()
                && flight.is_some_and(|flight| flight.attempt == claimed.attempts)
        })
    };
    let again: Vec<usize> = lost.into_iter().filter(is_ours).collect();
    let kept: Vec<_> = again.iter().map(|at| batch[*at].outcome.key()).collect();
    for claimed in adopted.iter().filter(|claimed| !kept.contains(&claimed.key())) {
        hub.give_back_later(claimed.key());
    }
    let outcomes = again.iter().map(|at| batch[*at].outcome.clone()).collect();
    match hub.store.finish(outcomes).await {
        Ok(results) => again.iter().zip(results).for_each(|(at, result)| settled[*at] = result),
        Err(error) => tracing::error!(%error, "outcomes of messages that were sent could not be stored"),
    }
    settled
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
