//! The verbs of delivery on SQLite: claims in memory go along with what the writer and the readers do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use postroad_model::{IdGenerator, MessageId, Timestamp};

use super::claims::{After, Key};
use super::{Engine, accept, finish, lock, queue, ready};
use crate::JobWithIds;
use crate::error::StoreError;
use crate::records::{Accepted, Begin, Begun, Claimed, Fresh, NewSend, Outcome};
use crate::sql::Sql;
use crate::verbs::desk::Entry;
use crate::verbs::finish::SourceCounts;

/// Messages that are being settled, and what that means for their claims.
type Settling = Vec<(Key, Option<After>)>;

impl Engine {
    /// While somebody delivers, what is pending is claimed for it before the commit, and handed over after it.
    pub(super) async fn accept_in_group(
        &self,
        send: NewSend,
        ids: Arc<IdGenerator>,
    ) -> Result<Accepted, StoreError> {
        let (claims, claims_after) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        let sink = self.hand_over.sink();
        let is_delivered = sink.is_some();
        let done = Arc::new(Mutex::new(None));
        let done_after = Arc::clone(&done);
        self.writer
            .run_then(
                send.weight(),
                move |connection| {
                    let accept::Written { accepted, queued } = accept::accept(connection, &send, &ids)?;
                    if is_delivered {
                        let mut claims = lock(&claims);
                        for entry in queued.iter().filter(|entry| entry.pending) {
                            claims.hold((send.info.server_id, entry.message_id), entry.due_at);
                        }
                    }
                    *lock(&done) = Some((send, queued));
                    Ok(accepted)
                },
                move |result| {
                    let Some((send, queued)) = lock(&done_after).take() else { return };
                    let server_id = send.info.server_id;
                    let (fresh, other): (Vec<_>, Vec<_>) =
                        queued.into_iter().partition(|entry| is_delivered && entry.pending);
                    let fresh: Vec<MessageId> = fresh.into_iter().map(|entry| entry.message_id).collect();
                    {
                        let mut claims = lock(&claims_after);
                        if result.is_err() {
                            queue::release_in(&mut claims, fresh.iter().map(|id| (server_id, *id)));
                            claims.look_again();
                            return;
                        }
                        for entry in &other {
                            claims.note_queued((server_id, entry.message_id), entry.due_at);
                        }
                    }
                    if let Some(sink) = sink.filter(|_| !fresh.is_empty()) {
                        sink.take(Fresh::of(send, &fresh));
                    }
                },
            )
            .await
    }

    /// Hands out due entries that nobody has.
    pub(crate) async fn claim(&self, due_by: Timestamp, limit: usize) -> Result<Vec<Claimed>, StoreError> {
        let (claims, undo) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        self.readers
            .run_or_undo(
                move |connection| queue::claim(connection, &claims, due_by, limit),
                move |unwanted: Vec<Claimed>| queue::release(&undo, unwanted.iter().map(Claimed::key)),
            )
            .await
    }

    pub(crate) async fn adopt(&self, keys: Vec<Key>) -> Result<Vec<Claimed>, StoreError> {
        let (claims, undo) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        self.readers
            .run_or_undo(
                move |connection| queue::adopt(connection, &claims, &keys),
                move |unwanted: Vec<Claimed>| queue::release(&undo, unwanted.iter().map(Claimed::key)),
            )
            .await
    }

    pub(crate) async fn begin(&self, entries: Vec<Begin>, now: Timestamp) -> Result<Vec<Begun>, StoreError> {
        if !entries.iter().any(|entry| entry.needs_message) {
            return Ok(queue::begin_fresh(&self.claims, &entries));
        }
        let (claims, undo) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        let undone = entries.clone();
        self.readers
            .run_or_undo(
                move |connection| queue::begin(connection, &claims, &entries, now),
                move |unheard: Vec<Begun>| queue::undo_begin(&undo, &undone, &unheard),
            )
            .await
    }

    pub(crate) async fn finish(
        &self,
        outcomes: Vec<Outcome>,
        ids: Arc<IdGenerator>,
    ) -> Result<Vec<bool>, StoreError> {
        let (claims, claims_after) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        let settling: Arc<Mutex<Settling>> = Arc::default();
        let settling_after = Arc::clone(&settling);
        self.writer
            .run_then(
                0,
                move |connection| {
                    let connection = lock(connection);
                    let (mut settled, mut counts) =
                        (Vec::with_capacity(outcomes.len()), SourceCounts::default());
                    for outcome in &outcomes {
                        if !lock(&claims).begin_settling(outcome.key()) {
                            settled.push(false);
                            continue;
                        }
                        lock(&settling).push((outcome.key(), None));
                        let after = finish::settle(&connection, outcome, &ids)?;
                        settled.push(after.is_some());
                        if let Some((_, noted)) = lock(&settling).last_mut().filter(|_| after.is_some()) {
                            *noted = after;
                            counts.add(outcome);
                        }
                    }
                    finish::count_sources(&connection, &counts)?;
                    Ok(settled)
                },
                move |result| {
                    let mut claims = lock(&claims_after);
                    for (key, after) in lock(&settling_after).drain(..) {
                        match result {
                            Ok(_) => claims.end_settling(key, after),
                            Err(_) => claims.undo_settling(key),
                        }
                    }
                },
            )
            .await
    }

    /// Changes a message that nobody has begun; `too_late` if somebody has. A claim of it is over.
    pub(crate) async fn change_waiting<T: Send + 'static>(
        &self,
        key: Key,
        ids: Arc<IdGenerator>,
        too_late: T,
        job: JobWithIds<(T, Entry)>,
    ) -> Result<(T, Entry), StoreError> {
        let (claims, claims_after) = (Arc::clone(&self.claims), Arc::clone(&self.claims));
        let is_ours = Arc::new(AtomicBool::new(false));
        let is_ours_after = Arc::clone(&is_ours);
        self.writer
            .run_then(
                0,
                move |connection| {
                    {
                        let mut claims = lock(&claims);
                        if claims.is_begun(key) {
                            return Ok((too_late, Entry::Unchanged));
                        }
                        is_ours.store(claims.begin_settling(key), Ordering::Relaxed);
                    }
                    ready(job(&Sql::Sqlite(connection), ids))
                },
                move |result| {
                    let mut claims = lock(&claims_after);
                    let is_ours = is_ours_after.load(Ordering::Relaxed);
                    match result {
                        Ok((_, Entry::Gone)) if is_ours => claims.end_settling(key, Some(After::Gone)),
                        Ok((_, Entry::Queued(due_at))) if is_ours => {
                            claims.end_settling(key, Some(After::Queued(*due_at)));
                        }
                        Ok((_, Entry::Queued(due_at))) => claims.note_queued(key, *due_at),
                        Ok(_) if is_ours => claims.undo_settling(key),
                        Err(_) => {
                            claims.look_again();
                            if is_ours {
                                claims.undo_settling(key);
                            }
                        }
                        Ok(_) => {}
                    }
                },
            )
            .await
    }

    pub(crate) fn is_claimed(&self, key: Key) -> bool {
        lock(&self.claims).is_held(key)
    }

    pub(crate) fn release(&self, keys: Vec<Key>) {
        queue::release(&self.claims, keys);
    }
}
