//! Queries about the queue, for operators and senders. They also work on the store alone, when no engine runs; then
//! they cannot report what the engine is doing.

use std::sync::Arc;
use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{GateScope, MessageId, ServerId, Shared, Status, Timestamp};
use postroad_store::{
    Backlog, Gate, NewDelivery, Pool, QueueEntry, QueueFilter, QueueStats, Store, StoreError,
};

use crate::engine::{EngineShared, apply_changes};
pub use crate::pacing::Reader;
pub use crate::providers::Provider;
use crate::schedule::PauseCause;
pub use crate::schedule::{PathTotals, Totals};

/// Handle for queries about the queue. Cheap to clone.
#[derive(Debug, Clone)]
pub struct QueueAdmin {
    store: Store,
    /// In `Shared`, because many futures of the portal and the API hold this handle.
    shared: Option<Shared<Arc<EngineShared>>>,
}

/// Counts of the queue and of the engine working on it.
#[derive(Debug, Clone)]
pub struct Overview {
    pub stored: QueueStats,
    pub engine: Option<Totals>,
    pub gates: Vec<Gate>,
    pub in_flight: usize,
}

/// One queued message, and why it waits.
#[derive(Debug, Clone)]
pub struct WaitingMessage {
    pub entry: QueueEntry,
    /// Why the message waits, and what its receiver seems to take, in sentences.
    pub why: String,
    /// The newest delivery record, if it is a temporary failure.
    pub last_failure: Option<NewDelivery>,
    /// Gates that may apply to the message: on everything, its server, its domain from any pool, and its server's pool.
    /// If the server has no pool: on the shared pool.
    pub gates: Vec<Gate>,
}

/// Whether messages are being sent, and how late they are.
#[derive(Debug, Clone)]
pub struct Health {
    /// Faults that stop all sending; empty if there are none.
    pub problems: Vec<String>,
    /// Delay of the longest overdue message.
    pub lag: Duration,
}

#[boxed_futures]
impl QueueAdmin {
    /// Checks that the flight journal accepts marks, and reads the head of the queue.
    pub async fn health(&self, now: Timestamp) -> Result<Health, StoreError> {
        let mut problems = Vec::new();
        let mut oldest = self.store.oldest_due().await?;
        if let Some(shared) = &self.shared {
            let (causes, waiting) =
                shared.query(|schedule, _| (schedule.pause_causes(), schedule.oldest_due()));
            oldest = [oldest, waiting].into_iter().flatten().min();
            if causes.contains(&PauseCause::Outcomes) {
                problems.push("outcomes of deliveries cannot be stored".to_owned());
            }
            let journal = Arc::clone(&shared.journal);
            match tokio::task::spawn_blocking(move || journal.check()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the flight journal cannot be written");
                    problems.push("the flight journal cannot be written".to_owned());
                }
                // The text of such an error may quote a panic.
                Err(_) => problems.push("the flight journal cannot be checked".to_owned()),
            }
        }
        Ok(Health { problems, lag: oldest.map_or(Duration::ZERO, |due_at| now.since(due_at)) })
    }

    pub(crate) fn with_engine(shared: Arc<EngineShared>) -> Self {
        Self { store: shared.store.clone(), shared: Some(Shared::new(shared)) }
    }

    pub fn without_engine(store: Store) -> Self {
        Self { store, shared: None }
    }

    pub async fn list(
        &self,
        filter: QueueFilter,
        after: Option<(Timestamp, MessageId)>,
        limit: usize,
    ) -> Result<Vec<QueueEntry>, StoreError> {
        self.store.list_queue(filter, after, limit).await
    }

    /// Counts at most `count_max` entries of the stored queue.
    pub async fn overview(&self, count_max: usize) -> Result<Overview, StoreError> {
        Ok(Overview {
            stored: self.store.queue_stats(count_max).await?,
            engine: self.shared.as_ref().map(|shared| shared.query(crate::schedule::Schedule::totals)),
            gates: self.store.list_gates().await?,
            in_flight: self.shared.as_ref().map_or(0, |shared| shared.being_sent().len()),
        })
    }

    /// The limits that sending to each provider starts with; empty if no engine runs.
    pub fn provider_limits(&self) -> impl Iterator<Item = &Provider> {
        self.shared.iter().flat_map(|shared| shared.router.providers.iter())
    }

    /// Servers with the most waiting messages.
    pub async fn backlogs(&self, limit: usize) -> Result<Vec<Backlog>, StoreError> {
        self.store.list_backlogs(limit).await
    }

    /// A queued message, with the reason why it waits in words for `reader`. `None` if it is not in the queue.
    pub async fn find(
        &self,
        id: MessageId,
        reader: Reader,
        now: Timestamp,
    ) -> Result<Option<WaitingMessage>, StoreError> {
        let Some(entry) = self.store.find_queued(id).await? else { return Ok(None) };
        let why = self.explain_wait(&entry, reader, now);
        let last_failure = self.last_delivery(entry.server_id, id).await?;
        let last_failure = last_failure.filter(|record| record.status == Status::SoftFail);
        let gates = self.gates_on(&entry).await?;
        Ok(Some(WaitingMessage { entry, why, last_failure, gates }))
    }

    /// The newest delivery record of a message.
    pub async fn last_delivery(
        &self,
        server_id: ServerId,
        id: MessageId,
    ) -> Result<Option<NewDelivery>, StoreError> {
        let newest = self.store.list_newest_deliveries(server_id, id, 1).await?;
        Ok(newest.into_iter().next().map(|delivery| delivery.record))
    }

    async fn gates_on(&self, entry: &QueueEntry) -> Result<Vec<Gate>, StoreError> {
        let mut gates = self.store.list_gates().await?;
        if gates.is_empty() {
            return Ok(gates);
        }
        let own_pool = self.store.find_server(entry.server_id).await?.and_then(|server| server.pool_id);
        let pools = self.store.list_pools().await?;
        let is_used = |pool: &Pool| own_pool.map_or(pool.shared, |own| pool.id == own);
        gates.retain(|gate| match &gate.scope {
            GateScope::Everything => true,
            GateScope::Server(id) => *id == entry.server_id,
            GateScope::Domain(domain) | GateScope::Lane { domain, .. } => *domain == entry.domain,
            GateScope::Pool(name) => pools.iter().any(|pool| pool.name == *name && is_used(pool)),
            // The next attempt's source address and host are not chosen yet; `why` says if all of them are blocked.
            GateScope::Provider(_) | GateScope::Path { .. } | GateScope::SourceProvider { .. } => false,
        });
        Ok(gates)
    }

    /// Why a message waits, and what its receiver seems to take, for this reader.
    pub fn explain_wait(&self, entry: &QueueEntry, reader: Reader, now: Timestamp) -> String {
        let Some(shared) = &self.shared else {
            return "It waits because Postroad is not running on this data folder.".to_owned();
        };
        if let Some(site) = shared.being_sent().get(&(entry.server_id, entry.message_id)) {
            return format!("It is being sent to {site} right now.");
        }
        shared.query(|schedule, at| {
            let (domain, server, message) = (&entry.domain, entry.server_id, entry.message_id);
            let text = if entry.due_at > now {
                let because = if entry.attempts > 0 { "its next attempt is" } else { "it is to be sent" };
                format!("It waits because {because} at {}.", entry.due_at.to_rfc3339())
            } else {
                schedule.why_waiting(domain, server, message, reader, at)
            };
            match schedule.estimates_about(domain, server, message, reader) {
                Some(learned) => format!("{text} Estimates about this receiver: {learned}."),
                None => text,
            }
        })
    }

    /// The server that a message belongs to.
    pub async fn locate(&self, id: MessageId) -> Result<Option<ServerId>, StoreError> {
        self.store.locate_message(id).await
    }

    /// Waits until the changes of the setup made in this process are in effect.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        match &self.shared {
            Some(shared) => apply_changes(shared).await,
            None => Ok(()),
        }
    }

    pub async fn gates(&self) -> Result<Vec<Gate>, StoreError> {
        self.store.list_gates().await
    }
}
