//! After a crash: settles the flights in the journal before anything is sent. Records messages that a dead node had
//! begun to send, as possible duplicates.

use std::sync::Arc;

use postroad_model::{MessageId, ServerId, Timestamp};
use postroad_smtp::{Phase, Reply};
use postroad_store::{ClaimedEntry, OTHER_PROVIDER, Outcome, StoreError};

use super::settler::remove_texts;
use super::{EngineShared, bare_entry};
use crate::attempt::settle::{Attempt, Settlement};
use crate::attempt::{Ending, Peer};
use crate::journal::{FinalReply, FlightKey, RecoveredFlight, RecoveredOutcome};
use crate::schedule::CountedSource;

/// Maximum number of flights settled in one transaction.
const FLIGHT_BATCH_MAX: usize = 500;

/// Settles the flights that an earlier process left, then releases the other messages that it had begun to send.
/// Messages that it had only claimed are released gradually by the feeder. Fails if claims cannot be taken over or
/// released, or if the store is unavailable. A flight whose outcome the store refuses stays in the journal.
pub(crate) async fn recover(
    shared: &Arc<EngineShared>,
    recovered: Vec<RecoveredFlight>,
) -> Result<(), StoreError> {
    if !recovered.is_empty() {
        tracing::info!(
            flights = recovered.len(),
            "settling flights that a previous process left in the journal"
        );
    }
    for flights in recovered.chunks(FLIGHT_BATCH_MAX) {
        let keys: Vec<(ServerId, MessageId)> =
            flights.iter().map(|flight| (flight.key.server_id, flight.key.message_id)).collect();
        let adopted = shared.store.adopt(keys).await?;
        let (mut outcomes, mut unsettled) = (Vec::new(), Vec::new());
        for flight in flights {
            let claimed = adopted.iter().find(|claimed| is_at_attempt_of(claimed, flight.key));
            let Some(claimed) = claimed else { continue };
            match settlement_of_flight(shared, claimed, Some(&flight.outcome)).await {
                Ok(mut settlement) => {
                    Arc::make_mut(&mut settlement.outcome).keep_claim = false;
                    outcomes.push(settlement.outcome);
                }
                Err(error @ StoreError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    log_unsettled(claimed.message_id, &error);
                    unsettled.push(claimed.key());
                }
            }
        }
        let settled: Vec<_> = outcomes.iter().map(|outcome| outcome.key()).collect();
        unsettled.extend(store_outcomes(shared, outcomes).await?);
        // Messages that are at a newer attempt were adopted too. They are released, not settled. Messages whose
        // outcomes the store refuses stay claimed and in the journal: nobody sends them again, and the next start tries
        // again to settle them.
        let remaining = adopted.iter().map(ClaimedEntry::key);
        let remaining = remaining.filter(|key| !settled.contains(key) && !unsettled.contains(key)).collect();
        shared.store.release_claims(remaining).await?;
        let is_settled = |key: &FlightKey| !unsettled.contains(&(key.server_id, key.message_id));
        shared.journal.remove_settled(flights.iter().map(|flight| flight.key).filter(is_settled));
    }
    shared.store.release_previous_claims().await?;
    Ok(())
}

/// Stores outcomes together, or one by one if the store refuses them together. Returns the messages whose outcomes the
/// store refuses for good.
async fn store_outcomes(
    shared: &EngineShared,
    outcomes: Vec<Arc<Outcome>>,
) -> Result<Vec<(ServerId, MessageId)>, StoreError> {
    match shared.store.finish(outcomes.clone()).await {
        Ok(_) => return Ok(Vec::new()),
        Err(error @ StoreError::Unavailable(_)) => return Err(error),
        Err(error) => tracing::error!(%error, "storing a batch of outcomes failed; storing them one by one"),
    }
    let mut refused = Vec::new();
    for mut outcome in outcomes {
        let mut stored = shared.store.finish(vec![Arc::clone(&outcome)]).await;
        if stored.as_ref().is_err_and(|error| !matches!(error, StoreError::Unavailable(_))) {
            remove_texts(Arc::make_mut(&mut outcome));
            stored = shared.store.finish(vec![Arc::clone(&outcome)]).await;
        }
        match stored {
            Ok(_) => {}
            Err(error @ StoreError::Unavailable(_)) => return Err(error),
            Err(error) => {
                log_unsettled(outcome.message_id, &error);
                refused.push(outcome.key());
            }
        }
    }
    Ok(refused)
}

fn log_unsettled(id: MessageId, error: &StoreError) {
    tracing::error!(message.id = %id, %error, "a message that a dead process was sending cannot be settled, and is not sent; settling is tried again at the next start");
}

/// Whether the claimed message is still at the attempt of this flight.
fn is_at_attempt_of(claimed: &ClaimedEntry, key: FlightKey) -> bool {
    claimed.key() == (key.server_id, key.message_id) && claimed.attempts == key.attempt
}

/// The settlement of a flight that a dead process left. `outcome` comes from the journal; `None` without a journal. The
/// settlement has all the effects of an ordinary outcome: suppression, counts of the source, giving up.
async fn settlement_of_flight(
    shared: &Arc<EngineShared>,
    claimed: &ClaimedEntry,
    outcome: Option<&RecoveredOutcome>,
) -> Result<Settlement, StoreError> {
    let message = shared.store.find_message(claimed.server_id, claimed.message_id).await?;
    let loaded_message = message.map(|message| shared.preparer.take_loaded(message));
    let now = shared.clock.now();
    let mut attempt = Attempt {
        entry: bare_entry(claimed),
        domain: claimed.domain.clone(),
        loaded_message: loaded_message.as_deref(),
        peer: Peer::default(),
        source: None,
        ip_pool: None,
        is_encrypted: false,
        is_simulated: shared.router.is_simulator(&claimed.domain),
        started_at: now,
        ended_at: None,
        transcript: String::new(),
        flight: None,
        retry_after: None,
        conclusion: None,
        dkim: None,
    };
    let ending = match outcome {
        None => Ending::Abandoned,
        Some(RecoveredOutcome::NoReply) => Ending::NoReply,
        Some(RecoveredOutcome::Replied(final_reply)) => {
            attempt.peer = peer_of(final_reply);
            attempt.source = final_reply.source_id.map(|id| CountedSource {
                id,
                provider: final_reply.provider.as_deref().unwrap_or(OTHER_PROVIDER).into(),
            });
            attempt.ip_pool = final_reply.ip_pool.as_deref().map(Into::into);
            attempt.dkim = final_reply.dkim.as_deref().map(Into::into);
            attempt.is_encrypted = final_reply.tls.is_some();
            attempt.started_at = started_at(final_reply);
            attempt.ended_at = Some(final_reply.at);
            ending_of(
                final_reply,
                loaded_message.as_ref().map(|loaded_message| loaded_message.rcpt_to.as_str()),
            )
        }
    };
    Ok(shared.settlement_of(&attempt, ending))
}

/// Settles messages that a dead node had begun to send: each may have arrived, and is tried again later. Returns the
/// messages that could not be read now.
pub(super) async fn settle_abandoned(
    shared: &Arc<EngineShared>,
    abandoned: Vec<ClaimedEntry>,
) -> Vec<ClaimedEntry> {
    let mut unread = Vec::new();
    for claimed in abandoned {
        match settlement_of_flight(shared, &claimed, None).await {
            Ok(settlement) => shared.settle(settlement).await,
            Err(error @ StoreError::Unavailable(_)) => {
                tracing::warn!(%error, "reading a message of a dead node failed; retrying");
                unread.push(claimed);
            }
            Err(error) => log_unsettled(claimed.message_id, &error),
        }
    }
    unread
}

fn ending_of(final_reply: &FinalReply, rcpt_to: Option<&str>) -> Ending {
    let text = final_reply.with_recipient(rcpt_to);
    let reply = Reply::new(final_reply.code, text.lines().map(str::to_owned).collect());
    let phase = Phase::all().find(|phase| phase.name() == final_reply.phase).unwrap_or(Phase::Final);
    if final_reply.accepted { Ending::Accepted(reply) } else { Ending::Refused { reply, phase } }
}

fn peer_of(final_reply: &FinalReply) -> Peer {
    Peer {
        mx: final_reply.mx.clone(),
        remote_ip: final_reply.remote_ip.parse().ok(),
        source_ip: final_reply.source_ip.parse().ok(),
        tls: final_reply.tls.clone(),
        tls_policy: final_reply.tls_policy.clone().map(Into::into),
        without_tls: final_reply.without_tls.clone(),
        log_id: "recovered".to_owned(),
    }
}

fn started_at(final_reply: &FinalReply) -> Timestamp {
    let micros = final_reply.duration_us.unwrap_or(0).max(0) as u64;
    final_reply.at.minus(std::time::Duration::from_micros(micros))
}
