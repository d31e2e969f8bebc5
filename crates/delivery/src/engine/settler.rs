//! Stores outcomes, many in one transaction. While they cannot be stored, nothing more is sent. Outcomes of messages
//! whose rows another transaction has locked are set aside, so that they delay no others.

use std::sync::Arc;
use std::time::Duration;

use postroad_store::{Outcome, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::EngineShared;
use crate::attempt::settle::Settlement;
use crate::schedule::PauseCause;

const BATCH_MAX: usize = 512;
/// Maximum number of outcomes that wait to be stored.
pub(crate) const WAITING_MAX: usize = 2_048;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// Maximum number of batches with outcomes that are set aside. Beyond that, delivery is paused.
const ASIDE_BATCHES_MAX: usize = 4;

#[derive(Debug)]
pub(crate) struct Settler {
    settlements: mpsc::Receiver<Settlement>,
    aside_permits: Arc<Semaphore>,
}

impl Settler {
    pub(crate) fn new() -> (mpsc::Sender<Settlement>, Self) {
        let (sender, settlements) = mpsc::channel(WAITING_MAX);
        (sender, Self { settlements, aside_permits: Arc::new(Semaphore::new(ASIDE_BATCHES_MAX)) })
    }

    /// Runs until the engine has stopped and no outcome is left to store. `all_done` is closed when the last task has
    /// ended.
    pub(crate) async fn run(mut self, shared: Arc<EngineShared>, mut all_done: mpsc::Receiver<()>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut is_last_round = false;
        loop {
            tokio::select! {
                biased;
                count = self.settlements.recv_many(&mut batch, BATCH_MAX) => {
                    if count == 0 {
                        return;
                    }
                    let locked = store_all(&shared, std::mem::take(&mut batch)).await;
                    if !locked.is_empty() {
                        self.set_aside(&shared, locked).await;
                    }
                }
                // All tasks that could add outcomes have ended.
                _ = all_done.recv(), if !is_last_round => {
                    is_last_round = true;
                    self.settlements.close();
                }
            }
        }
    }

    /// Spawns a task that stores the outcomes whose rows are locked.
    async fn set_aside(&self, shared: &Arc<EngineShared>, locked: Vec<Settlement>) {
        tracing::warn!(
            outcomes = locked.len(),
            "rows of messages are locked by another transaction; their outcomes are stored one by one"
        );
        // If the service is stopping, the journal has the sent messages, and the next start settles them.
        let Some(permit) = self.acquire_aside_permit(shared).await else { return };
        let task_shared = Arc::clone(shared);
        shared.spawn(async move {
            store_one_by_one(&task_shared, locked).await;
            drop(permit);
        });
    }

    /// Waits until one more batch may be set aside; all delivery pauses meanwhile. `None` if the service stops first.
    async fn acquire_aside_permit(&self, shared: &Arc<EngineShared>) -> Option<OwnedSemaphorePermit> {
        let mut is_paused = false;
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.aside_permits).try_acquire_owned() {
                break permit;
            }
            pause(shared);
            is_paused = true;
            if shared.is_stopping() {
                return None;
            }
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
        };
        if is_paused {
            shared.with(|schedule, now| schedule.resume(PauseCause::Outcomes, now));
        }
        Some(permit)
    }
}

/// Stores outcomes one by one. Retries those whose rows are locked until they are stored or the service stops.
async fn store_one_by_one(shared: &Arc<EngineShared>, mut waiting: Vec<Settlement>) {
    loop {
        let mut locked = Vec::new();
        for settlement in waiting {
            locked.extend(store_all(shared, vec![settlement]).await);
        }
        if locked.is_empty() || shared.unless_stopped(tokio::time::sleep(TRY_AGAIN_AFTER)).await.is_none() {
            return;
        }
        waiting = locked;
    }
}

/// Result of storing outcomes. Neither list has outcomes that the store refuses for good, or that were not stored
/// before the service stopped: the journal has the sent messages, and the next start settles them.
#[derive(Default)]
struct StoreResult {
    /// Each settlement, and whether the message was still this node's.
    settled: Vec<(Settlement, bool)>,
    /// Those whose rows are locked by another transaction.
    locked: Vec<Settlement>,
}

/// Stores outcomes. Returns those whose rows are locked by another transaction.
async fn store_all(shared: &Arc<EngineShared>, batch: Vec<Settlement>) -> Vec<Settlement> {
    let StoreResult { settled, mut locked } = store_batch(shared, batch).await;
    let is_lost = |(settlement, is_settled): &(Settlement, bool)| !is_settled && settlement.flight.is_some();
    let (lost, settled): (Vec<_>, Vec<_>) = settled.into_iter().partition(is_lost);
    conclude(shared, settled);
    if !lost.is_empty() {
        let lost = lost.into_iter().map(|(settlement, _)| settlement).collect();
        let again = store_batch(shared, claim_again(shared, lost).await).await;
        conclude(shared, again.settled);
        locked.extend(again.locked);
    }
    locked
}

/// Stores outcomes together, or one by one if the store refuses them together.
async fn store_batch(shared: &Arc<EngineShared>, batch: Vec<Settlement>) -> StoreResult {
    if batch.is_empty() {
        return StoreResult::default();
    }
    match finish_when_possible(shared, &batch).await {
        Some(Ok(settled)) => {
            StoreResult { settled: batch.into_iter().zip(settled).collect(), locked: Vec::new() }
        }
        Some(Err(error)) if error.is_lock_timeout() => StoreResult { settled: Vec::new(), locked: batch },
        Some(Err(error)) => {
            let is_single = batch.len() == 1;
            if !is_single {
                tracing::error!(%error, "storing a batch of outcomes failed; storing them one by one");
            }
            let mut all = StoreResult::default();
            for settlement in batch {
                let StoreResult { settled, locked } = if is_single {
                    store_bare(shared, settlement, &error).await
                } else {
                    Box::pin(store_batch(shared, vec![settlement])).await
                };
                all.settled.extend(settled);
                all.locked.extend(locked);
            }
            all
        }
        None => StoreResult::default(),
    }
}

/// Stores outcomes; pauses all delivery while the store is unavailable. `None` if the service stops before it is back.
async fn finish_when_possible(
    shared: &Arc<EngineShared>,
    batch: &[Settlement],
) -> Option<Result<Vec<bool>, StoreError>> {
    let mut is_paused = false;
    let finished = loop {
        let outcomes: Vec<Arc<Outcome>> =
            batch.iter().map(|settlement| Arc::clone(&settlement.outcome)).collect();
        match shared.store.finish(outcomes).await {
            Err(error @ StoreError::Unavailable(_)) if !error.is_lock_timeout() => {
                tracing::error!(%error, outcomes = batch.len(), "storing outcomes failed; delivery is paused until it works");
                pause(shared);
                is_paused = true;
                if shared.is_stopping() {
                    return None;
                }
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
            // Stored, refused for good, or rows are locked.
            finished => break finished,
        }
    };
    if is_paused {
        shared.with(|schedule, now| schedule.resume(PauseCause::Outcomes, now));
    }
    Some(finished)
}

fn pause(shared: &Arc<EngineShared>) {
    // Every tenant can read the reason, so the cause is only in the log.
    let reason = "outcomes cannot be stored".to_owned();
    shared.with(|schedule, _| schedule.pause(PauseCause::Outcomes, reason));
}

/// Stores an outcome without its texts and its suppression, after the store refused the whole outcome.
async fn store_bare(
    shared: &Arc<EngineShared>,
    mut settlement: Settlement,
    error: &StoreError,
) -> StoreResult {
    let id = settlement.outcome.message_id;
    tracing::error!(message.id = %id, %error, "storing an outcome failed; storing it without its texts");
    remove_texts(Arc::make_mut(&mut settlement.outcome));
    match finish_when_possible(shared, std::slice::from_ref(&settlement)).await {
        Some(Ok(settled)) => {
            let is_settled = settled == [true];
            StoreResult { settled: vec![(settlement, is_settled)], ..StoreResult::default() }
        }
        Some(Err(error)) if error.is_lock_timeout() => {
            StoreResult { locked: vec![settlement], ..StoreResult::default() }
        }
        Some(Err(error)) => {
            give_up(shared, &settlement, &error);
            StoreResult::default()
        }
        None => StoreResult::default(),
    }
}

/// Removes the parts that the store might refuse: the texts and the suppression.
pub(super) fn remove_texts(outcome: &mut Outcome) {
    (outcome.transcript, outcome.suppress, outcome.delivery.output) = (None, None, String::new());
    "{}".clone_into(&mut outcome.event.data);
}

/// Drops an outcome that the store refuses for good. A message that was not sent is claimed again; the journal keeps
/// the flight of a message that was sent, and the next start settles it.
fn give_up(shared: &Arc<EngineShared>, settlement: &Settlement, error: &StoreError) {
    let id = settlement.outcome.message_id;
    tracing::error!(message.id = %id, %error, "storing an outcome failed for good; if the message was sent, the next start settles it, otherwise it is tried again");
    shared.no_longer_being_sent(settlement.outcome.key());
    if settlement.flight.is_none() {
        shared.release_later(settlement.outcome.key());
    }
}

/// Claims messages again, after the node lost its lease and so its claims. Otherwise messages that this node sent would
/// be sent again. Returns the settlements of messages that still exist and are at the same attempt.
async fn claim_again(shared: &Arc<EngineShared>, lost: Vec<Settlement>) -> Vec<Settlement> {
    let keys: Vec<_> = lost.iter().map(|settlement| settlement.outcome.key()).collect();
    let adopted = loop {
        match shared.store.adopt(keys.clone()).await {
            Ok(adopted) => break adopted,
            Err(error @ StoreError::Unavailable(_)) => {
                tracing::error!(%error, "claiming sent messages again after a lost lease failed; retrying");
                // The journal has the messages, and the next start settles them.
                if shared.is_stopping() {
                    return Vec::new();
                }
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
            Err(error) => {
                for settlement in &lost {
                    give_up(shared, settlement, &error);
                }
                return Vec::new();
            }
        }
    };
    let is_ours = |settlement: &Settlement| {
        let Some(flight) = settlement.flight else { return false };
        let outcome = &settlement.outcome;
        adopted.iter().any(|claimed| {
            claimed.key() == outcome.key()
                && claimed.attempts == flight.attempt
                && outcome.claimed_due_at.is_none_or(|due_at| due_at == claimed.due_at)
        })
    };
    let (ours, others): (Vec<_>, Vec<_>) = lost.into_iter().partition(is_ours);
    let our_keys: Vec<_> = ours.iter().map(|settlement| settlement.outcome.key()).collect();
    for claimed in adopted.iter().filter(|claimed| !our_keys.contains(&claimed.key())) {
        shared.release_later(claimed.key());
    }
    conclude(shared, others.into_iter().map(|settlement| (settlement, false)).collect());
    ours
}

/// Called when the outcomes are on stable storage, or belong to messages that are no longer this node's.
fn conclude(shared: &Arc<EngineShared>, settled: Vec<(Settlement, bool)>) {
    shared.journal.remove_settled(settled.iter().filter_map(|(settlement, _)| settlement.flight));
    shared.with(|schedule, now| {
        for (settlement, is_settled) in settled {
            shared.no_longer_being_sent(settlement.outcome.key());
            settlement.conclude(schedule, is_settled, now);
        }
    });
}
