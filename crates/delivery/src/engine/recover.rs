//! After a crash: what the flight journal says is settled before anything is sent.

use std::sync::Arc;

use postroad_model::{MessageId, ServerId, Timestamp};
use postroad_smtp::{Phase, Reply};
use postroad_store::{Claimed, StoreError};

use super::{Hub, bare_entry};
use crate::attempt::settle::{Attempt, Settlement};
use crate::attempt::{Ending, Peer};
use crate::journal::{Answered, FlightKey, Recovered, RecoveredOutcome};

const AT_ONCE: usize = 500;

/// Settles the flights that a killed process left, then gives back what else it had begun. What it had only claimed comes
/// back by and by.
pub(crate) async fn recover(hub: &Arc<Hub>, recovered: Vec<Recovered>) -> Result<(), StoreError> {
    if !recovered.is_empty() {
        tracing::info!(
            flights = recovered.len(),
            "settling what a previous process left in the flight journal"
        );
    }
    for flights in recovered.chunks(AT_ONCE) {
        let keys: Vec<(ServerId, MessageId)> =
            flights.iter().map(|flight| (flight.key.server_id, flight.key.message_id)).collect();
        let adopted = hub.store.adopt(keys).await?;
        let mut settlements = Vec::new();
        for flight in flights {
            let claimed = adopted.iter().find(|claimed| is_of(claimed, flight.key));
            settlements.extend(claimed.map(|claimed| settlement(hub, claimed, flight)));
        }
        // A newer attempt of the same message was adopted with it; only these are settled here.
        let settled: Vec<_> = settlements.iter().map(|settlement| settlement.outcome.key()).collect();
        let outcomes = settlements.into_iter().map(|settlement| settlement.outcome).collect();
        hub.store.finish(outcomes).await?;
        let left = adopted.iter().map(Claimed::key).filter(|key| !settled.contains(key)).collect();
        hub.store.release(left).await?;
        hub.journal.settled(flights.iter().map(|flight| flight.key));
    }
    hub.store.release_previous().await?;
    Ok(())
}

/// The attempt of the journal is the one that the queue waits for.
fn is_of(claimed: &Claimed, key: FlightKey) -> bool {
    claimed.key() == (key.server_id, key.message_id) && claimed.attempts == key.attempt
}

fn settlement(hub: &Arc<Hub>, claimed: &Claimed, flight: &Recovered) -> Settlement {
    let now = hub.clock.now();
    let (ending, peer, started_at, is_encrypted) = match &flight.outcome {
        RecoveredOutcome::Unanswered => (Ending::Unanswered, Peer::default(), now, false),
        RecoveredOutcome::Answered(answered) => {
            (answer(answered), peer(answered), started(answered), answered.tls.is_some())
        }
    };
    let attempt = Attempt {
        entry: bare_entry(claimed),
        domain: claimed.domain.clone(),
        work: None,
        peer,
        source: None,
        is_encrypted,
        is_simulated: hub.router.is_simulator(&claimed.domain),
        started_at,
        transcript: String::new(),
        flight: None,
    };
    let mut settlement = hub.judge(&attempt, ending);
    Arc::make_mut(&mut settlement.outcome).keep_claim = false;
    settlement
}

fn answer(answered: &Answered) -> Ending {
    let reply = Reply::new(answered.code, answered.text.lines().map(str::to_owned).collect());
    if answered.accepted { Ending::Accepted(reply) } else { Ending::Refused { reply, phase: Phase::Final } }
}

fn peer(answered: &Answered) -> Peer {
    Peer {
        mx: answered.mx.clone(),
        remote_ip: answered.remote_ip.parse().ok(),
        source_ip: answered.source_ip.parse().ok(),
        tls: answered.tls.clone(),
        log_id: "recovered".to_owned(),
    }
}

fn started(answered: &Answered) -> Timestamp {
    let micros = answered.duration_us.unwrap_or(0).max(0) as u64;
    answered.at.minus(std::time::Duration::from_micros(micros))
}
