//! Records the expiry of messages within seconds, whatever keeps them back: gates, pauses, a pool without addresses, a site
//! that is down, or a full schedule. On failure it tries again a second later.

use std::sync::Arc;
use std::time::Duration;

use postroad_store::{Outcome, StoreError};
use tokio::task::JoinSet;

use super::{EngineShared, bare_entry};
use crate::attempt::Ending;

const LOOK_EVERY: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 500;
/// Writes under way at the same time; the store puts them into common transactions.
const WRITES_MAX: usize = 32;

/// For as long as the engine runs.
pub(crate) async fn keep_expiry(shared: Arc<EngineShared>) {
    loop {
        if let Err(error) = record_expired(&shared).await {
            tracing::warn!(%error, "recording expired messages failed; retrying in 1 s");
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = shared.stopped() => return,
        }
    }
}

/// Records all that have expired. What the schedule has of them is dropped when its turn comes: the store no longer lets
/// it begin. Messages on the wire are left to their connection.
async fn record_expired(shared: &Arc<EngineShared>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let expired = shared.store.list_expired(after, AT_ONCE).await?;
        let is_last = expired.len() < AT_ONCE;
        after = expired.last().and_then(|last| Some((last.expires_at?, last.message_id)));
        let mut writes = JoinSet::new();
        for claimed in expired {
            if shared.in_flight().contains_key(&claimed.key()) {
                continue;
            }
            if writes.len() >= WRITES_MAX {
                finished(writes.join_next().await)?;
            }
            let settlement = shared.settle_unsent(
                Some(claimed.domain.clone()),
                bare_entry(&claimed),
                Ending::Expired,
                None,
            );
            let (store, outcome): (_, Arc<Outcome>) = (shared.store.clone(), settlement.outcome);
            writes.spawn(async move { store.finish_waiting(outcome).await });
        }
        while let Some(write) = writes.join_next().await {
            finished(Some(write))?;
        }
        if is_last || shared.is_stopping() {
            return Ok(());
        }
    }
}

fn finished(
    write: Option<Result<Result<bool, StoreError>, tokio::task::JoinError>>,
) -> Result<(), StoreError> {
    match write {
        Some(Ok(written)) => written.map(drop),
        Some(Err(error)) => Err(StoreError::Internal(error.to_string())),
        None => Ok(()),
    }
}
