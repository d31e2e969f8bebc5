//! Records the expiry of messages within seconds, whatever keeps the messages waiting: gates, pauses, a pool without
//! addresses, a site that is down, or a full schedule. A failed round is repeated a second later.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::MessageId;
use postroad_store::{Outcome, StoreError};
use tokio::task::JoinSet;

use super::{EngineShared, bare_entry};
use crate::attempt::Ending;

const ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of expired messages read from the store at a time.
const EXPIRED_READ_MAX: usize = 500;
/// Maximum number of concurrent writes; the store combines them into transactions.
const WRITES_MAX: usize = 32;

/// Runs as long as the engine does.
pub(crate) async fn run_expiry(shared: Arc<EngineShared>) {
    loop {
        if let Err(error) = record_expired(&shared).await {
            tracing::warn!(%error, "recording expired messages failed; retrying in 1 s");
        }
        tokio::select! {
            () = tokio::time::sleep(ROUND_INTERVAL) => {}
            () = shared.stopped() => return,
        }
    }
}

/// Records all expired messages. Their entries are dropped when the schedule reaches them, because the store
/// no longer lets them begin. Messages being sent are left to their connection.
async fn record_expired(shared: &Arc<EngineShared>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let expired = shared.store.list_expired(after, EXPIRED_READ_MAX).await?;
        let is_last = expired.len() < EXPIRED_READ_MAX;
        after = expired.last().and_then(|last| Some((last.expires_at?, last.message_id)));
        let mut writes = JoinSet::new();
        for claimed in expired {
            if shared.being_sent().contains_key(&claimed.key()) {
                continue;
            }
            if writes.len() >= WRITES_MAX {
                check_write(writes.join_next().await)?;
            }
            let settlement = shared.settlement_of_unsent(
                Some(claimed.domain.clone()),
                bare_entry(&claimed),
                Ending::Expired,
                None,
            );
            let (store, outcome): (_, Arc<Outcome>) = (shared.store.clone(), settlement.outcome);
            writes.spawn(async move { (outcome.message_id, store.finish_waiting(outcome).await) });
        }
        while let Some(write) = writes.join_next().await {
            check_write(Some(write))?;
        }
        if is_last || shared.is_stopping() {
            return Ok(());
        }
    }
}

/// A message, and whether it was still waiting when its expiry was recorded.
type WriteResult = (MessageId, Result<bool, StoreError>);

/// Handles the result of one write. An expiry that cannot be recorded is skipped; an unavailable store ends the round.
fn check_write(write: Option<Result<WriteResult, tokio::task::JoinError>>) -> Result<(), StoreError> {
    match write {
        Some(Ok((_, Err(error @ StoreError::Unavailable(_))))) => return Err(error),
        Some(Ok((message_id, Err(error)))) => {
            tracing::error!(message.id = %message_id, %error, "recording an expired message failed; retrying in 1 s");
        }
        Some(Err(error)) => tracing::error!(%error, "recording an expired message failed; retrying in 1 s"),
        Some(Ok((_, Ok(_)))) | None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_that_cannot_be_recorded_does_not_stop_the_others() {
        let failed = |error| check_write(Some(Ok((MessageId(7), Err(error)))));
        assert!(failed(StoreError::Internal("an odd row".into())).is_ok());
        assert!(failed(StoreError::NotFound).is_ok());
        assert!(
            failed(StoreError::Unavailable("the disk is full".into())).is_err(),
            "an unavailable store ends the round"
        );
        assert!(check_write(Some(Ok((MessageId(7), Ok(true))))).is_ok());
    }
}
