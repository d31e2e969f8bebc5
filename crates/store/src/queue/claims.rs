//! Claims: queue entries handed out to this node, given back, or taken over from nodes that are gone.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainName, MessageId, ServerId, Timestamp};

use super::claimed::Claimed;
use crate::accept::FreshSink;
use crate::{Engine, Result, Store};

#[boxed_futures]
impl Store {
    /// From now on pending messages are accepted as claimed by this node, and go to `sink` right after their commit,
    /// even if whoever sent them hung up.
    pub fn deliver_to(&self, sink: Arc<dyn FreshSink>) {
        self.hand_over.attach(Some(sink));
    }

    /// From now on nothing is claimed when it is accepted. What was accepted a moment ago may still come.
    pub fn stop_delivering(&self) {
        self.hand_over.attach(None);
    }

    /// Hands out entries due by then, oldest first, that nobody else has. Scheduled messages that are due become pending
    /// first, or are held if their server's hourly limit is reached. Entries of `skip_domains` may be left out,
    /// so that a destination which takes no more does not block the others.
    pub async fn claim(
        &self,
        due_by: Timestamp,
        limit: usize,
        skip_domains: Vec<DomainName>,
    ) -> Result<Vec<Claimed>> {
        self.promote_due(limit).await;
        match &*self.engine {
            // Entries handed out once are not read again, so nothing blocks.
            Engine::Sqlite { engine, .. } => engine.claim(due_by, limit).await,
            Engine::Postgres(engine) => engine.claim(due_by, limit, &skip_domains).await,
        }
    }

    /// Gives claimed messages back untouched.
    pub async fn release(&self, claimed: Vec<(ServerId, MessageId)>) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => {
                engine.release(claimed);
                Ok(())
            }
            Engine::Postgres(engine) => engine.release(claimed).await,
        }
    }

    /// Claims that one `reap` gives back at most.
    pub const REAPED_AT_ONCE: usize = 10_000;

    /// Gives claims of nodes that are gone, or of processes before this one, back to the queue; returns how many. What they
    /// had begun may have been sent: see `adopt_abandoned`.
    pub async fn reap(&self) -> Result<u64> {
        match &*self.engine {
            // Claims are in the memory of the one process there is.
            Engine::Sqlite { .. } => Ok(0),
            Engine::Postgres(engine) => engine.reap(Self::REAPED_AT_ONCE).await,
        }
    }

    /// Claims messages that nodes which are gone had begun, 15 minutes after they did: until then they can come back with their journal.
    /// These may have arrived: to be finished with a record that says so. Until then nobody sends them: should this node be
    /// gone too, or give them back, the next call hands them out again.
    pub async fn adopt_abandoned(&self, limit: usize) -> Result<Vec<Claimed>> {
        match &*self.engine {
            // There is one process, and its journal knows.
            Engine::Sqlite { .. } => Ok(Vec::new()),
            Engine::Postgres(engine) => engine.adopt_abandoned(limit).await,
        }
    }

    /// Messages that this node had begun when it ended. On SQLite only its journal knows.
    pub async fn list_previous_begun(&self) -> Result<Vec<(ServerId, MessageId)>> {
        match &*self.engine {
            Engine::Sqlite { .. } => Ok(Vec::new()),
            Engine::Postgres(engine) => engine.list_previous().await,
        }
    }

    /// Claims these very messages, if they are queued and no living node has them: to settle what a journal knows of,
    /// or what was finished under a lease that was lost. Those that are not in the answer could not be had.
    pub async fn adopt(&self, keys: Vec<(ServerId, MessageId)>) -> Result<Vec<Claimed>> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.adopt(keys).await,
            Engine::Postgres(engine) => engine.adopt(&keys).await,
        }
    }

    /// Gives what else the process before had begun back to the queue; returns how many. What it had only claimed, which
    /// may be a million messages, is reaped step by step.
    pub async fn release_previous(&self) -> Result<u64> {
        match &*self.engine {
            Engine::Sqlite { .. } => Ok(0),
            Engine::Postgres(engine) => engine.release_previous().await,
        }
    }
}
