//! Stores outcomes, many in one transaction. While they cannot be stored, nothing more is sent.

use std::sync::Arc;
use std::time::Duration;

use postroad_store::{Outcome, StoreError};
use tokio::sync::mpsc;

use super::EngineShared;
use crate::attempt::settle::Settlement;
use crate::schedule::PauseCause;

const BATCH_MAX: usize = 512;
/// Maximum number of outcomes that wait to be stored.
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

    /// Runs until the engine has stopped and everything is stored. `all_tasks` is closed when the last task has ended.
    pub(crate) async fn run(mut self, shared: Arc<EngineShared>, mut all_tasks: mpsc::Receiver<()>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut is_last_round = false;
        loop {
            tokio::select! {
                biased;
                count = self.settlements.recv_many(&mut batch, BATCH_MAX) => {
                    if count == 0 {
                        return;
                    }
                    store_all(&shared, std::mem::take(&mut batch)).await;
                }
                // All tasks that could add more have ended.
                _ = all_tasks.recv(), if !is_last_round => {
                    is_last_round = true;
                    self.settlements.close();
                }
            }
        }
    }
}

async fn store_all(shared: &Arc<EngineShared>, batch: Vec<Settlement>) {
    let outcomes = batch.iter().map(|settlement| Arc::clone(&settlement.outcome)).collect();
    match finish_when_possible(shared, outcomes).await {
        Some(Ok(settled)) => {
            // On `None` the service is stopping: the journal has the sent messages, and the next start settles them.
            if let Some(settled) = settle_again(shared, &batch, settled).await {
                conclude(shared, batch, &settled);
            }
        }
        Some(Err(error)) if batch.len() > 1 => {
            tracing::error!(%error, "storing a batch of outcomes failed; storing them one by one");
            for settlement in batch {
                Box::pin(store_all(shared, vec![settlement])).await;
            }
        }
        Some(Err(error)) => {
            for settlement in batch {
                store_bare(shared, settlement, &error).await;
            }
        }
        // The service is stopping: the journal has the sent messages, and the next start settles them.
        None => {}
    }
}

/// Stores outcomes; pauses all delivery while the store is unavailable. `None` if the service stops before it is back.
async fn finish_when_possible(
    shared: &Arc<EngineShared>,
    outcomes: Vec<Arc<Outcome>>,
) -> Option<Result<Vec<bool>, StoreError>> {
    let mut is_paused = false;
    let finished = loop {
        match shared.store.finish(outcomes.clone()).await {
            Err(error @ StoreError::Unavailable(_)) => {
                tracing::error!(%error, outcomes = outcomes.len(), "storing outcomes failed; delivery is paused until it works");
                // Every tenant reads the reason: the cause is for the log alone.
                let reason = "outcomes cannot be stored".to_owned();
                shared.with(|schedule, _| schedule.pause(PauseCause::Outcomes, reason));
                is_paused = true;
                if shared.is_stopping() {
                    return None;
                }
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
            finished => break finished,
        }
    };
    if is_paused {
        shared.with(|schedule, now| schedule.resume(PauseCause::Outcomes, now));
    }
    Some(finished)
}

/// Stores an outcome without its texts and its suppression, after the store refused the whole outcome.
async fn store_bare(shared: &Arc<EngineShared>, mut settlement: Settlement, error: &StoreError) {
    let id = settlement.outcome.message_id;
    tracing::error!(message.id = %id, %error, "storing an outcome failed; storing it without its texts");
    let outcome = Arc::make_mut(&mut settlement.outcome);
    (outcome.transcript, outcome.suppress, outcome.delivery.output) = (None, None, String::new());
    "{}".clone_into(&mut outcome.event.data);
    match finish_when_possible(shared, vec![Arc::clone(&settlement.outcome)]).await {
        Some(Ok(settled)) => conclude(shared, vec![settlement], &settled),
        Some(Err(error)) => {
            tracing::error!(message.id = %id, %error, "storing an outcome failed for good; if the message was sent, the next start settles it, otherwise it is tried again");
            shared.no_longer_being_sent(settlement.outcome.key());
            if settlement.flight.is_none() {
                shared.release_later(settlement.outcome.key());
            }
        }
        None => {}
    }
}

/// Claims messages again and stores their outcomes, after the node lost its lease and so its claims. Otherwise messages
/// that it sent would be sent again. `None` if the service stops before that is possible.
async fn settle_again(
    shared: &Arc<EngineShared>,
    batch: &[Settlement],
    mut settled: Vec<bool>,
) -> Option<Vec<bool>> {
    let mut lost: Vec<usize> =
        (0..batch.len()).filter(|at| !settled[*at] && batch[*at].flight.is_some()).collect();
    while !lost.is_empty() {
        match adopt_and_finish(shared, batch, &lost).await {
            Ok(results) => {
                for (at, result) in results {
                    settled[at] = result;
                }
                lost.clear();
            }
            Err(error) => {
                tracing::error!(%error, "storing outcomes of sent messages after a lost lease failed; retrying");
                if shared.is_stopping() {
                    return None;
                }
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
        }
    }
    Some(settled)
}

/// Claims the messages at the indexes `lost` of the batch and stores their outcomes. Skips messages that no longer
/// exist or are at another attempt.
async fn adopt_and_finish(
    shared: &Arc<EngineShared>,
    batch: &[Settlement],
    lost: &[usize],
) -> Result<Vec<(usize, bool)>, StoreError> {
    let adopted = shared.store.adopt(lost.iter().map(|at| batch[*at].outcome.key()).collect()).await?;
    let is_ours = |at: &usize| {
        let Some(flight) = batch[*at].flight else { return false };
        let outcome = &batch[*at].outcome;
        adopted.iter().any(|claimed| {
            claimed.key() == outcome.key()
                && claimed.attempts == flight.attempt
                && outcome.claimed_for.is_none_or(|due_at| due_at == claimed.due_at)
        })
    };
    let again: Vec<usize> = lost.iter().copied().filter(is_ours).collect();
    let kept: Vec<_> = again.iter().map(|at| batch[*at].outcome.key()).collect();
    for claimed in adopted.iter().filter(|claimed| !kept.contains(&claimed.key())) {
        shared.release_later(claimed.key());
    }
    let outcomes = again.iter().map(|at| Arc::clone(&batch[*at].outcome)).collect();
    let results = shared.store.finish(outcomes).await?;
    Ok(again.into_iter().zip(results).collect())
}

/// Called when the outcomes are on stable storage.
fn conclude(shared: &Arc<EngineShared>, batch: Vec<Settlement>, settled: &[bool]) {
    shared.journal.settled(batch.iter().filter_map(|settlement| settlement.flight));
    shared.with(|schedule, now| {
        for (settlement, settled) in batch.into_iter().zip(settled) {
            shared.no_longer_being_sent(settlement.outcome.key());
            settlement.conclude(schedule, *settled, now);
        }
    });
}
