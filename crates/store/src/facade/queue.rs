//! The queue as the delivery engine works it off: fresh messages, claims, outcomes.

use std::sync::Arc;

use postroad_model::{DomainName, MessageId, ServerId, Timestamp};

use crate::records::{Begin, Begun, Claimed, FreshSink};
use crate::verbs::desk::{Entry, Key};
use crate::verbs::{queue_list, scheduled};
use crate::{Engine, JobWithIds, Result, Store};

/// Scheduled messages made pending in one transaction.
const PROMOTED_AT_ONCE: usize = 100;

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
            // What is handed out once is not looked at again, so nothing blocks.
            Engine::Sqlite { engine, .. } => engine.claim(due_by, limit).await,
            Engine::Postgres(engine) => engine.claim(due_by, limit, &skip_domains).await,
        }
    }

    /// In small transactions: a held message costs several statements, and a server with many of them must not keep the
    /// others waiting. A failure is logged; it must not stop the claims, and the next turn tries again.
    async fn promote_due(&self, limit: usize) {
        let mut left = limit;
        while left > 0 {
            let at_once = left.min(PROMOTED_AT_ONCE);
            match Box::pin(self.promote_scheduled(at_once as i64)).await {
                Ok(count) if count == at_once => left -= count,
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(%error, "releasing scheduled messages failed; retrying");
                    return;
                }
            }
        }
    }

    /// Returns how many it looked at.
    async fn promote_scheduled(&self, limit: i64) -> Result<usize> {
        let now = self.clock.now();
        // Asked every second, and mostly for nothing: that should not cost a write.
        if !self.read(move |sql| Box::pin(scheduled::has_due(sql, now))).await? {
            return Ok(0);
        }
        let job: JobWithIds<Vec<(Key, Entry)>> = Box::new(move |sql, ids| {
            Box::pin(async move { scheduled::promote(sql, &ids, now, limit).await })
        });
        let changes = match &*self.engine {
            Engine::Sqlite { engine, ids } => engine.change_free(Arc::clone(ids), job).await?,
            Engine::Postgres(engine) => engine.write_with_ids(job).await?,
        };
        // Some may be held, and limits may be reached: both are events.
        if !changes.is_empty() {
            self.bells.ring(changes.iter().map(|((server_id, _), _)| *server_id));
        }
        Ok(changes.len())
    }

    /// To be asked right before claimed messages go on the wire; one answer for each. What it lets go is begun: it
    /// cannot be cancelled or retried any more, and is not begun a second time. A message is read, and its recipient looked
    /// up among the suppressed, if the entry says so or an address of its server was suppressed since it was due.
    pub async fn begin(&self, mut entries: Vec<Begin>) -> Result<Vec<Begun>> {
        let now = self.clock.now();
        match &*self.engine {
            Engine::Sqlite { engine, .. } => {
                self.last_suppressed.have_read(&mut entries);
                engine.begin(entries, now).await
            }
            Engine::Postgres(engine) => engine.begin(&entries, now).await,
        }
    }

    /// Takes a `begin` back: the message is not on the wire after all. It stays claimed, and can be begun again.
    pub async fn unbegin(&self, server_id: ServerId, id: MessageId) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => {
                engine.unbegin((server_id, id));
                Ok(())
            }
            Engine::Postgres(engine) => engine.unbegin((server_id, id)).await,
        }
    }

    /// Makes a claimed message scheduled again: its `send_at` lies ahead since the clock went back. Does nothing to one that is
    /// on the wire.
    pub async fn postpone(&self, server_id: ServerId, id: MessageId, send_at: Timestamp) -> Result<()> {
        let key = (server_id, id);
        let job: JobWithIds<((), Entry)> =
            Box::new(move |sql, _| Box::pin(scheduled::postpone(sql, key, send_at)));
        match &*self.engine {
            Engine::Sqlite { engine, ids } => engine.change_waiting(key, Arc::clone(ids), (), job).await?,
            Engine::Postgres(engine) => engine.change_waiting(key, job).await?,
        };
        Ok(())
    }

    /// Queued messages whose `expires_at` has passed, claimed or not, beginning after the entry `after`.
    pub async fn list_expired(
        &self,
        after: Option<(Timestamp, MessageId)>,
        limit: usize,
    ) -> Result<Vec<Claimed>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(queue_list::list_expired(sql, now, after, limit as i64))).await
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

    /// Claims messages that nodes which are gone had begun, 15 minutes after they did: so long they can come back and tell.
    /// These may have arrived: to be finished with a record that says so. Until then nobody sends them: should this node be
    /// gone too, or give them back, the next call hands them out again.
    pub async fn adopt_abandoned(&self, limit: usize) -> Result<Vec<Claimed>> {
        match &*self.engine {
            // There is one process, and its journal knows.
            Engine::Sqlite { .. } => Ok(Vec::new()),
            Engine::Postgres(engine) => engine.adopt_abandoned(limit).await,
        }
    }
}

/// After a restart: what became of the claims of the process before.
impl Store {
    /// What this node had begun when it ended. On SQLite nobody knows but its journal.
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
