//! Delivery operations on SQLite. Claims in memory follow the changes of the writer and the readers.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::{IdGenerator, ServerId, Timestamp};

use super::changes::{AcceptWork, ChangeUnclaimedWork, ChangeWaitingWork, CorrectDueTimesWork, SettleWork};
use super::claims::Key;
use super::writer::NO_BYTES;
use super::{Engine, queue};
use crate::SqlOperationWithIds;
use crate::accept::{Accepted, NewSend};
use crate::clock_back::queue::QueuePosition;
use crate::error::StoreError;
use crate::outcomes::Outcome;
use crate::queue::waiting::EntryChange;
use crate::queue::{BeginRequest, BeginResult, ClaimedEntry};

impl Engine {
    pub(super) async fn accept_in_group(
        &self,
        sends: Vec<NewSend>,
        ids: Arc<IdGenerator>,
    ) -> Result<Accepted, StoreError> {
        let weight = sends.iter().map(NewSend::weight).sum();
        // All sends are from one server.
        let server = sends.first().map(|send| send.info.server_id);
        let sink = self.hand_over.sink().filter(|sink| server.is_some_and(|server| sink.has_room(server)));
        self.writer.run(weight, AcceptWork::new(sends, ids, Arc::clone(&self.claims), sink)).await
    }

    /// Claims due entries that nobody has claimed.
    pub(crate) async fn claim(
        &self,
        due_by: Timestamp,
        limit: usize,
        skip_servers: Vec<ServerId>,
    ) -> Result<Vec<ClaimedEntry>, StoreError> {
        let (claims, undo) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        self.readers
            .run_or_undo(
                move |connection| queue::claim(connection, &claims, due_by, limit, &skip_servers),
                move |unwanted: Vec<ClaimedEntry>| {
                    queue::release(&undo, unwanted.iter().map(ClaimedEntry::key));
                },
            )
            .await
    }

    pub(crate) async fn adopt(&self, keys: Vec<Key>) -> Result<Vec<ClaimedEntry>, StoreError> {
        let (claims, undo) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        self.readers
            .run_or_undo(
                move |connection| queue::adopt(connection, &claims, &keys),
                move |unwanted: Vec<ClaimedEntry>| {
                    queue::release(&undo, unwanted.iter().map(ClaimedEntry::key));
                },
            )
            .await
    }

    pub(crate) async fn begin(
        &self,
        entries: Vec<BeginRequest>,
        now: Timestamp,
    ) -> Result<Vec<BeginResult>, StoreError> {
        if !entries.iter().any(|entry| entry.needs_message) {
            return Ok(queue::begin_fresh(&self.claims, &entries));
        }
        let (claims, undo) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        let undone = entries.clone();
        self.readers
            .run_or_undo(
                move |connection| queue::begin(connection, &claims, &entries, now),
                move |unwanted: Vec<BeginResult>| queue::undo_begin(&undo, &undone, &unwanted),
            )
            .await
    }

    pub(crate) async fn finish(
        &self,
        outcomes: Vec<Arc<Outcome>>,
        ids: Arc<IdGenerator>,
    ) -> Result<Vec<bool>, StoreError> {
        self.writer.run(NO_BYTES, SettleWork::new(outcomes, ids, Arc::clone(&self.claims))).await
    }

    /// Changes a message that is not being sent; otherwise returns `result_if_being_sent`. Ends a claim on the message.
    pub(crate) async fn change_waiting<T: Send + 'static>(
        &self,
        key: Key,
        ids: Arc<IdGenerator>,
        result_if_being_sent: T,
        operation: SqlOperationWithIds<(T, EntryChange)>,
    ) -> Result<(T, EntryChange), StoreError> {
        let (claims, work) = (Arc::clone(&self.claims), Some((result_if_being_sent, operation)));
        self.writer.run(NO_BYTES, ChangeWaitingWork { key, ids, claims, work, is_changing: false }).await
    }

    pub(crate) fn is_claimed(&self, key: Key) -> bool {
        self.claims.lock().is_claimed(key)
    }

    pub(crate) fn release(&self, keys: Vec<Key>) {
        queue::release(&self.claims, keys);
    }

    /// Changes unclaimed entries.
    pub(crate) async fn change_unclaimed(
        &self,
        ids: Arc<IdGenerator>,
        operation: SqlOperationWithIds<Vec<(Key, EntryChange)>>,
    ) -> Result<Vec<(Key, EntryChange)>, StoreError> {
        let claims = Arc::clone(&self.claims);
        self.writer.run(NO_BYTES, ChangeUnclaimedWork { ids, claims, operation: Some(operation) }).await
    }

    /// Corrects due times of unclaimed entries; returns how many, and where to continue.
    pub(crate) async fn correct_due_times(
        &self,
        now: Timestamp,
        pause_max: Duration,
        after: Option<QueuePosition>,
        limit: i64,
    ) -> Result<(usize, Option<QueuePosition>), StoreError> {
        let claims = Arc::clone(&self.claims);
        let work = CorrectDueTimesWork { claims, now, pause_max, after, limit, changed: Vec::new() };
        self.writer.run(NO_BYTES, work).await
    }

    /// Reverts `begin`: the message is not being sent after all, and stays claimed.
    pub(crate) fn unbegin(&self, key: Key) {
        self.claims.lock().undo_begin(key);
    }
}
