//! The queue as an operator sees it: look, retry, cancel.

use std::sync::Arc;

use postroad_model::{MessageId, ServerId, Timestamp};

use crate::records::{Cancelled, QueueEntry, QueueFilter, QueueStats, Retried};
use crate::verbs::desk::Entry;
use crate::verbs::{desk, queue_list};
use crate::{Engine, JobWithIds, Result, Store};

impl Store {
    /// In the order they are due, beginning after the entry `after`.
    pub async fn list_queue(
        &self,
        filter: QueueFilter,
        after: Option<(Timestamp, MessageId)>,
        limit: usize,
    ) -> Result<Vec<QueueEntry>> {
        let mut entries =
            self.read(move |sql| Box::pin(queue_list::list(sql, filter, after, limit as i64))).await?;
        self.fill_in_claimed(&mut entries);
        Ok(entries)
    }

    /// The queue entry of a message, whichever server's it is.
    pub async fn find_queued(&self, id: MessageId) -> Result<Option<QueueEntry>> {
        let mut entry = self.read(move |sql| Box::pin(queue_list::find(sql, id))).await?;
        self.fill_in_claimed(entry.as_mut_slice());
        Ok(entry)
    }

    fn fill_in_claimed(&self, entries: &mut [QueueEntry]) {
        if let Engine::Sqlite { engine, .. } = &*self.engine {
            for entry in entries {
                entry.claimed = engine.is_claimed((entry.server_id, entry.message_id));
            }
        }
    }

    /// The server that a message is of.
    pub async fn locate_message(&self, id: MessageId) -> Result<Option<ServerId>> {
        self.read(move |sql| Box::pin(queue_list::locate(sql, id))).await
    }

    pub async fn queue_stats(&self) -> Result<QueueStats> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(queue_list::stats(sql, now))).await
    }

    /// Makes a queued message due now and puts a held one into the queue. A claim of it is over.
    pub async fn retry(&self, server_id: ServerId, id: MessageId) -> Result<Retried> {
        let (now, key) = (self.clock.now(), (server_id, id));
        let job: JobWithIds<(Retried, Entry)> =
            Box::new(move |sql, ids| Box::pin(async move { desk::retry(sql, &ids, key, now).await }));
        let (retried, entry) = match &*self.engine {
            Engine::Sqlite { engine, ids } => {
                engine.change_waiting(key, Arc::clone(ids), Retried::TooLate, job).await?
            }
            Engine::Postgres(engine) => engine.change_waiting(key, job).await?,
        };
        self.note_entry(server_id, entry);
        Ok(retried)
    }

    /// Ends a message that is queued or held. A claim of it is over.
    pub async fn cancel(&self, server_id: ServerId, id: MessageId) -> Result<Cancelled> {
        let (now, key) = (self.clock.now(), (server_id, id));
        let job: JobWithIds<(Cancelled, Entry)> =
            Box::new(move |sql, ids| Box::pin(async move { desk::cancel(sql, &ids, key, now).await }));
        let (cancelled, entry) = match &*self.engine {
            Engine::Sqlite { engine, ids } => {
                engine.change_waiting(key, Arc::clone(ids), Cancelled::TooLate, job).await?
            }
            Engine::Postgres(engine) => engine.change_waiting(key, job).await?,
        };
        self.note_entry(server_id, entry);
        Ok(cancelled)
    }

    fn note_entry(&self, server_id: ServerId, entry: Entry) {
        if entry != Entry::Unchanged {
            self.note_change();
            self.bells.ring([server_id]);
        }
    }

    /// Ends holds whose time is over, at most `limit`; returns how many were looked at.
    pub async fn expire_holds(&self, limit: usize) -> Result<u64> {
        let (now, limit) = (self.clock.now(), limit as i64);
        // Asked every few seconds, and mostly for nothing: that should not cost a write.
        if !self.read(move |sql| Box::pin(desk::has_expired_holds(sql, now))).await? {
            return Ok(0);
        }
        let ended = self
            .write_with_ids(move |sql, ids| {
                Box::pin(async move { desk::expire_holds(sql, &ids, now, limit).await })
            })
            .await?;
        self.bells.ring_everywhere();
        Ok(ended)
    }
}
