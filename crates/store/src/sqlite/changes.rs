//! Delivery operations in the writer's group. Claims in memory change with the transaction, and are corrected after its
//! commit or rollback.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use postroad_model::{IdGenerator, MessageId, Timestamp};
use rusqlite::Connection;

use super::accept::QueuedEntry;
use super::claims::{Claims, EntryAfter, Key};
use super::finish::SettleResult;
use super::operation::Work;
use super::{accept, finish, ready};
use crate::SqlOperationWithIds;
use crate::accept::hand_over::Sink;
use crate::accept::{Accepted, FreshMessages, NewSend};
use crate::clock_back::queue;
use crate::clock_back::queue::QueuePosition;
use crate::error::StoreError;
use crate::outcomes::Outcome;
use crate::outcomes::outcome::AttemptMatch;
use crate::outcomes::source_tally::SourceTally;
use crate::queue::waiting::EntryChange;
use crate::sql::Sql;

/// Accepts sends. While delivery runs, pending messages are claimed for delivery before the commit, and handed over
/// after the commit.
pub(super) struct AcceptWork {
    /// One send, or all sends of a batch; empty once they are handed over. All belong to one server.
    sends: Vec<NewSend>,
    ids: Arc<IdGenerator>,
    claims: Arc<Mutex<Claims>>,
    sink: Option<Sink>,
    queued: Vec<QueuedEntry>,
}

impl AcceptWork {
    pub(super) fn new(
        sends: Vec<NewSend>,
        ids: Arc<IdGenerator>,
        claims: Arc<Mutex<Claims>>,
        sink: Option<Sink>,
    ) -> Self {
        Self { sends, ids, claims, sink, queued: Vec::new() }
    }
}

impl Work for AcceptWork {
    type Output = Accepted;
    const IS_REPEATABLE: bool = true;

    fn run(&mut self, connection: &Mutex<Connection>) -> Result<Accepted, StoreError> {
        let first = self
            .sends
            .first()
            .ok_or_else(|| StoreError::Internal("the sends were already handed over".into()))?;
        let server_id = first.info.server_id;
        // Claims of an earlier run, which was rolled back.
        for entry in self.queued.drain(..) {
            self.claims.lock().forget((server_id, entry.message_id));
        }
        let accept::WrittenSends { accepted, queued } = accept::accept(connection, &self.sends, &self.ids)?;
        if self.sink.is_some() {
            let mut claims = self.claims.lock();
            for entry in queued.iter().filter(|entry| entry.pending) {
                claims.add((server_id, entry.message_id), entry.due_at);
            }
        }
        self.queued = queued;
        Ok(accepted)
    }

    fn after_group(&mut self, result: &Result<Accepted, StoreError>) {
        let sends = std::mem::take(&mut self.sends);
        let Some(server_id) = sends.first().map(|send| send.info.server_id) else { return };
        let is_delivering = self.sink.is_some();
        let (fresh, other): (Vec<QueuedEntry>, Vec<QueuedEntry>) =
            self.queued.drain(..).partition(|entry| is_delivering && entry.pending);
        let fresh: Vec<MessageId> = fresh.into_iter().map(|entry| entry.message_id).collect();
        {
            let mut claims = self.claims.lock();
            if result.is_err() {
                for id in fresh {
                    claims.release((server_id, id));
                }
                claims.read_all_again();
                return;
            }
            for entry in &other {
                claims.note_queued((server_id, entry.message_id), entry.due_at);
            }
        }
        let Some(sink) = self.sink.as_ref() else { return };
        let mut fresh = fresh.as_slice();
        for send in sends {
            let is_of_send = |id: &&MessageId| send.recipients.iter().any(|recipient| recipient.id == **id);
            let (of_send, others) = fresh.split_at(fresh.iter().take_while(is_of_send).count());
            fresh = others;
            if !of_send.is_empty() {
                sink.take(FreshMessages::of(send, of_send));
            }
        }
    }
}

/// Records outcomes of claimed messages.
pub(super) struct SettleWork {
    outcomes: Vec<Arc<Outcome>>,
    ids: Arc<IdGenerator>,
    claims: Arc<Mutex<Claims>>,
    /// Messages being settled, and the effect on their claims.
    under_way: Vec<(Key, Option<EntryAfter>)>,
}

impl SettleWork {
    pub(super) fn new(
        outcomes: Vec<Arc<Outcome>>,
        ids: Arc<IdGenerator>,
        claims: Arc<Mutex<Claims>>,
    ) -> Self {
        Self { under_way: Vec::with_capacity(outcomes.len()), outcomes, ids, claims }
    }
}

impl Work for SettleWork {
    type Output = Vec<bool>;
    const IS_REPEATABLE: bool = true;

    fn run(&mut self, connection: &Mutex<Connection>) -> Result<Vec<bool>, StoreError> {
        // Marks of an earlier run, which was rolled back.
        for (key, _) in self.under_way.drain(..) {
            self.claims.lock().revert_begin_settling(key);
        }
        let connection = connection.lock();
        let (mut settled, mut counts) = (Vec::with_capacity(self.outcomes.len()), SourceTally::default());
        for outcome in &self.outcomes {
            let key = outcome.key();
            {
                let mut claims = self.claims.lock();
                // The claim may be for another attempt, for example if an earlier commit has already recorded this
                // outcome.
                let relation = claims.claimed_due_at(key).map(|due_at| outcome.match_attempt(due_at));
                if let Some(relation @ (AttemptMatch::Recorded | AttemptMatch::Other)) = relation {
                    settled.push(relation == AttemptMatch::Recorded);
                    continue;
                }
                if !claims.begin_settling(key) {
                    settled.push(false);
                    continue;
                }
            }
            self.under_way.push((key, None));
            let (is_settled, after) = match finish::settle(&connection, outcome, &self.ids)? {
                SettleResult::Recorded(after) => {
                    counts.add(outcome);
                    (true, Some(after))
                }
                SettleResult::AlreadyRecorded(after) => (true, Some(after)),
                SettleResult::Impossible => (false, None),
            };
            settled.push(is_settled);
            if let Some((_, entry_after)) = self.under_way.last_mut() {
                *entry_after = after;
            }
        }
        finish::add_source_counts(&connection, &counts)?;
        Ok(settled)
    }

    fn after_group(&mut self, result: &Result<Vec<bool>, StoreError>) {
        let mut claims = self.claims.lock();
        for (key, after) in self.under_way.drain(..) {
            match result {
                Ok(_) => claims.end_settling(key, after),
                Err(_) => claims.undo_settling(key),
            }
        }
    }
}

/// Changes a message that is not being sent, and ends a claim on the message. Until the change is committed, nobody can
/// claim or begin the message.
pub(super) struct ChangeWaitingWork<T> {
    pub(super) key: Key,
    pub(super) ids: Arc<IdGenerator>,
    pub(super) claims: Arc<Mutex<Claims>>,
    /// The result to return if the message is being sent, and the change.
    pub(super) work: Option<(T, SqlOperationWithIds<(T, EntryChange)>)>,
    pub(super) is_changing: bool,
}

impl<T: Send + 'static> Work for ChangeWaitingWork<T> {
    type Output = (T, EntryChange);
    const IS_REPEATABLE: bool = false;

    fn run(&mut self, connection: &Mutex<Connection>) -> Result<(T, EntryChange), StoreError> {
        let ran_twice = || StoreError::Internal("a change was run twice".into());
        let (result_if_being_sent, operation) = self.work.take().ok_or_else(ran_twice)?;
        self.is_changing = self.claims.lock().begin_change(self.key);
        if !self.is_changing {
            return Ok((result_if_being_sent, EntryChange::Unchanged));
        }
        ready(operation(&Sql::Sqlite(connection), Arc::clone(&self.ids)))
    }

    fn after_group(&mut self, result: &Result<(T, EntryChange), StoreError>) {
        let mut claims = self.claims.lock();
        if result.is_err() {
            claims.read_all_again();
        }
        if self.is_changing {
            claims.end_change(self.key, entry_after(result));
        }
    }
}

/// Effect of a committed change on the queue entry; `None` if there is none.
fn entry_after<T>(result: &Result<(T, EntryChange), StoreError>) -> Option<EntryAfter> {
    match result {
        Ok((_, EntryChange::Gone)) => Some(EntryAfter::Gone),
        Ok((_, EntryChange::Queued(due_at))) => Some(EntryAfter::Queued(*due_at)),
        Ok((_, EntryChange::Unchanged)) | Err(_) => None,
    }
}

/// Changes unclaimed entries.
pub(super) struct ChangeUnclaimedWork {
    pub(super) ids: Arc<IdGenerator>,
    pub(super) claims: Arc<Mutex<Claims>>,
    pub(super) operation: Option<SqlOperationWithIds<Vec<(Key, EntryChange)>>>,
}

impl Work for ChangeUnclaimedWork {
    type Output = Vec<(Key, EntryChange)>;
    const IS_REPEATABLE: bool = false;

    fn run(&mut self, connection: &Mutex<Connection>) -> Result<Vec<(Key, EntryChange)>, StoreError> {
        let ran_twice = || StoreError::Internal("a change was run twice".into());
        let operation = self.operation.take().ok_or_else(ran_twice)?;
        ready(operation(&Sql::Sqlite(connection), Arc::clone(&self.ids)))
    }

    fn after_group(&mut self, result: &Result<Vec<(Key, EntryChange)>, StoreError>) {
        let mut claims = self.claims.lock();
        match result {
            Ok(changes) => {
                for (key, entry) in changes {
                    if let EntryChange::Queued(due_at) = entry {
                        claims.note_queued(*key, *due_at);
                    }
                }
            }
            Err(_) => claims.read_all_again(),
        }
    }
}

/// Corrects due times of unclaimed entries after the clock went back.
pub(super) struct CorrectDueTimesWork {
    pub(super) claims: Arc<Mutex<Claims>>,
    pub(super) now: Timestamp,
    pub(super) pause_max: Duration,
    pub(super) after: Option<QueuePosition>,
    pub(super) limit: i64,
    pub(super) changed: Vec<(Key, Timestamp)>,
}

impl Work for CorrectDueTimesWork {
    type Output = (usize, Option<QueuePosition>);
    const IS_REPEATABLE: bool = false;

    fn run(&mut self, connection: &Mutex<Connection>) -> Result<(usize, Option<QueuePosition>), StoreError> {
        let sql = Sql::Sqlite(connection);
        let page = queue::list_wrong_due_times(&sql, self.now, self.pause_max, self.after, self.limit);
        let (wrong, next) = ready(page)?;
        for entry in wrong {
            let is_free = {
                let mut claims = self.claims.lock();
                !claims.is_claimed(entry.key) && claims.begin_change(entry.key)
            };
            if is_free {
                self.changed.push((entry.key, entry.due_at));
                ready(entry.correct_times(&sql))?;
            }
        }
        Ok((self.changed.len(), next))
    }

    fn after_group(&mut self, result: &Result<(usize, Option<QueuePosition>), StoreError>) {
        let mut claims = self.claims.lock();
        if result.is_err() {
            claims.read_all_again();
        }
        for (key, due_at) in self.changed.drain(..) {
            claims.end_change(key, result.is_ok().then_some(EntryAfter::Queued(due_at)));
        }
    }
}

#[cfg(test)]
mod tests;
