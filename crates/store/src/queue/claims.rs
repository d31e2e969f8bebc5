//! Claims of this node on queue entries: claims due entries, releases them, and takes over entries of dead nodes.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{MessageId, ServerId, Timestamp};

use super::claimed_entry::{ClaimSkips, ClaimedEntry};
use crate::accept::FreshSink;
use crate::{Engine, Result, Store};

/// Maximum number of rounds in one claim in which scheduled messages become pending.
const PROMOTION_ROUNDS_MAX: u32 = 4;

#[boxed_futures]
impl Store {
    /// From now on, pending messages for which `sink` has room are accepted as claimed by this node. They are passed to
    /// `sink` right after the commit, even if the client that sent them has disconnected.
    pub fn deliver_to(&self, sink: Arc<dyn FreshSink>) {
        self.hand_over.set_sink(Some(sink));
    }

    /// From now on, no message is claimed when it is accepted. The sink may still get messages accepted a moment ago.
    pub fn stop_delivering(&self) {
        self.hand_over.set_sink(None);
    }

    /// Claims unclaimed entries that are due by `due_by`, oldest first. Before that, scheduled messages that are due
    /// become pending, a few of each server at a time, or are held (`due_holds.rs`). Entries that `skip` names are left
    /// out, so that a server or a destination that takes no more does not block other servers and destinations.
    pub async fn claim(
        &self,
        due_by: Timestamp,
        limit: usize,
        skip: ClaimSkips,
    ) -> Result<Vec<ClaimedEntry>> {
        let mut round = 0;
        loop {
            round += 1;
            let has_more = self.promote_due(limit).await;
            let claimed = match &*self.engine {
                // Entries that are claimed already are not read again, so no destination blocks the others.
                Engine::Sqlite { engine, .. } => engine.claim(due_by, limit, skip.servers.clone()).await?,
                Engine::Postgres(engine) => engine.claim(due_by, limit, &skip).await?,
            };
            // Perhaps all messages that became due were held or left out; the next ones may be claimable.
            if !claimed.is_empty() || !has_more || round == PROMOTION_ROUNDS_MAX {
                return Ok(claimed);
            }
        }
    }

    /// Releases claimed messages unchanged.
    pub async fn release_claims(&self, claimed: Vec<(ServerId, MessageId)>) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => {
                engine.release(claimed);
                Ok(())
            }
            Engine::Postgres(engine) => engine.release(claimed).await,
        }
    }

    /// Maximum number of claims that one `reap` releases.
    pub const REAPED_CLAIMS_MAX: usize = 10_000;

    /// Releases claims of dead nodes, or of earlier processes of this node; returns how many. Messages that those nodes
    /// or processes had begun stay claimed, because they may have been sent: see `adopt_abandoned`.
    pub async fn reap(&self) -> Result<u64> {
        match &*self.engine {
            // There is only one process, with its claims in memory.
            Engine::Sqlite { .. } => Ok(0),
            Engine::Postgres(engine) => engine.reap(Self::REAPED_CLAIMS_MAX).await,
        }
    }

    /// Claims messages that dead nodes had begun 15 minutes ago or earlier. During those 15 minutes, the dead nodes can
    /// return with their journals. The messages may have arrived: the caller must finish them with a record that says
    /// so, and no node sends them before that record is stored. If this node dies too, or releases them, the next call
    /// returns them again.
    pub async fn adopt_abandoned(&self, limit: usize) -> Result<Vec<ClaimedEntry>> {
        match &*self.engine {
            // There is only one process, and its journal knows the messages that it had begun.
            Engine::Sqlite { .. } => Ok(Vec::new()),
            Engine::Postgres(engine) => engine.adopt_abandoned(limit).await,
        }
    }

    /// Claims the messages among `keys` that are queued and that no living node has claimed. Used to settle entries of
    /// a journal, or outcomes of messages claimed under a lost lease.
    pub async fn adopt(&self, keys: Vec<(ServerId, MessageId)>) -> Result<Vec<ClaimedEntry>> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.adopt(keys).await,
            Engine::Postgres(engine) => engine.adopt(&keys).await,
        }
    }

    /// Releases messages that the previous process had begun and this process has not adopted; returns how many.
    /// Messages that the previous process had claimed but not begun, perhaps a million, are left to `reap`, which
    /// releases them in steps.
    pub async fn release_previous_claims(&self) -> Result<u64> {
        match &*self.engine {
            Engine::Sqlite { .. } => Ok(0),
            Engine::Postgres(engine) => engine.release_previous_claims().await,
        }
    }
}
