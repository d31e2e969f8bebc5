//! Retries and cancels waiting messages.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{
    DomainName, EmailAddress, EventKind, IdGenerator, MessageId, ServerId, Status, Timestamp,
};
use serde_json::json;

use super::release::{Rules, release};
use super::retried::Retried;
use super::waiting::{Entry, Key, find, lock_and_check_sending, remove_entry, settle};
use crate::error::StoreError;
use crate::events::NewEvent;
use crate::messages::message;
use crate::outcomes::NewDelivery;
use crate::sql::Sql;
use crate::suppressions::lookup;
use crate::{Described, Engine, JobWithIds, Result, Store};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The message was cancelled, and now has this status.
    Done(Status),
    /// The message is being sent right now.
    TooLate,
    /// The message is neither queued nor held, or is unknown.
    NotWaiting,
}

/// What a message must wait for so that a change applies to it. Other messages are treated as not waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingFor {
    Anything,
    /// Held messages.
    Release,
    /// Queued messages that are not scheduled.
    Delivery,
    /// Scheduled messages.
    SendTime,
}

impl WaitingFor {
    fn includes(self, status: Status) -> bool {
        match self {
            Self::Anything => true,
            Self::Release => status == Status::Held,
            Self::Delivery => status.is_queued() && status != Status::Scheduled,
            Self::SendTime => status == Status::Scheduled,
        }
    }
}

#[boxed_futures]
impl Store {
    /// For the operator: makes a queued message due now, or queues a held message. Ends a claim on the message. Limits
    /// and suppressions do not apply to mail to the domain `exempt`.
    pub async fn retry(&self, server_id: ServerId, id: MessageId, exempt: DomainName) -> Result<Retried> {
        let by_operator = true;
        self.retry_for(server_id, id, WaitingFor::Anything, by_operator, exempt).await
    }

    /// `retry` for callers other than the operator, if the message waits for `only`. These callers cannot release
    /// messages that a ceiling on the server's mode holds.
    pub async fn retry_if(
        &self,
        server_id: ServerId,
        id: MessageId,
        only: WaitingFor,
        exempt: DomainName,
    ) -> Result<Retried> {
        let by_operator = false;
        self.retry_for(server_id, id, only, by_operator, exempt).await
    }

    async fn retry_for(
        &self,
        server_id: ServerId,
        id: MessageId,
        only: WaitingFor,
        by_operator: bool,
        exempt: DomainName,
    ) -> Result<Retried> {
        let (now, key) = (self.clock.now(), (server_id, id));
        let job: JobWithIds<(Retried, Entry)> = Box::new(move |sql, ids| {
            Box::pin(async move { retry(sql, &ids, key, only, by_operator, &exempt, now).await })
        });
        let job = self.describing(job, move |(retried, _)| {
            matches!(retried, Retried::Now | Retried::Released).then(|| of_message(id))
        });
        let _turn = self.wait_to_describe(server_id).await;
        let (retried, entry) = match &*self.engine {
            Engine::Sqlite { engine, ids } => {
                engine.change_waiting(key, Arc::clone(ids), Retried::TooLate, job).await?
            }
            Engine::Postgres(engine) => engine.change_waiting(key, job).await?,
        };
        self.note_entry(server_id, entry);
        Ok(retried)
    }

    /// Cancels a message that is queued or held. Ends a claim on the message.
    pub async fn cancel(&self, server_id: ServerId, id: MessageId) -> Result<Cancelled> {
        self.cancel_if(server_id, id, WaitingFor::Anything).await
    }

    /// Cancels a message if it waits for `only`.
    pub async fn cancel_if(&self, server_id: ServerId, id: MessageId, only: WaitingFor) -> Result<Cancelled> {
        let (now, key) = (self.clock.now(), (server_id, id));
        let job: JobWithIds<(Cancelled, Entry)> =
            Box::new(move |sql, ids| Box::pin(async move { cancel(sql, &ids, key, only, now).await }));
        let job = self.describing(job, move |(cancelled, _)| {
            matches!(cancelled, Cancelled::Done(_)).then(|| of_message(id))
        });
        let _turn = self.wait_to_describe(server_id).await;
        let (cancelled, entry) = match &*self.engine {
            Engine::Sqlite { engine, ids } => {
                engine.change_waiting(key, Arc::clone(ids), Cancelled::TooLate, job).await?
            }
            Engine::Postgres(engine) => engine.change_waiting(key, job).await?,
        };
        self.note_entry(server_id, entry);
        Ok(cancelled)
    }

    /// Notifies delivery and readers of events after a change of a queue entry.
    pub(super) fn note_entry(&self, server_id: ServerId, entry: Entry) {
        if matches!(entry, Entry::Queued(_)) {
            self.queue_changes.send_modify(|count| *count += 1);
        }
        if entry != Entry::Unchanged {
            self.notifier.notify([server_id]);
        }
    }
}

/// Description of a changed message for the audit log.
pub(super) fn of_message(id: MessageId) -> Described {
    Described::from_iter([("message".to_owned(), id.0.into())])
}

pub(crate) async fn cancel(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    only: WaitingFor,
    now: Timestamp,
) -> Result<(Cancelled, Entry), StoreError> {
    if lock_and_check_sending(sql, key).await? {
        return Ok((Cancelled::TooLate, Entry::Unchanged));
    }
    let state = find(sql, key).await?.filter(|state| only.includes(state.status));
    let Some(state) = state else { return Ok((Cancelled::NotWaiting, Entry::Unchanged)) };
    let (status, details) = match state.status {
        Status::Held => (Status::HoldCancelled, "The held message was cancelled"),
        _ => (Status::Cancelled, "The message was cancelled before it was sent"),
    };
    let new = NewDelivery::local(now, status, details);
    if !settle(sql, ids, key, &state, &new, &cancelled_event(&new), None).await? {
        return Ok((Cancelled::NotWaiting, Entry::Unchanged));
    }
    remove_entry(sql, key).await?;
    Ok((Cancelled::Done(status), Entry::Gone))
}

pub(crate) async fn retry(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    only: WaitingFor,
    by_operator: bool,
    exempt: &DomainName,
    now: Timestamp,
) -> Result<(Retried, Entry), StoreError> {
    if lock_and_check_sending(sql, key).await? {
        return Ok((Retried::TooLate, Entry::Unchanged));
    }
    let state = find(sql, key).await?.filter(|state| only.includes(state.status));
    let Some(state) = state else { return Ok((Retried::NotWaiting, Entry::Unchanged)) };
    let is_held = state.status == Status::Held;
    if !is_held && !state.status.is_queued() {
        return Ok((Retried::NotWaiting, Entry::Unchanged));
    }
    let message = message::find(sql, key.0, key.1).await?.ok_or(StoreError::NotFound)?;
    let is_exempt = EmailAddress::parse(&message.rcpt_to).is_ok_and(|address| address.domain() == exempt);
    if !is_exempt && let Some(found) = lookup::find(sql, key.0, message.rcpt_to.clone(), now).await? {
        let suppressed = Retried::Suppressed { reason: found.reason, since: found.created_at };
        return Ok((suppressed, Entry::Unchanged));
    }
    if is_held {
        return release(sql, ids, key, &message, &state, Rules { by_operator, is_exempt }, now).await;
    }
    // A claim made for the old due time ends: `begin` answers `Gone`.
    let text = if sql.is_sqlite() {
        "UPDATE queue SET due_at = $3 WHERE server_id = $1 AND message_id = $2"
    } else {
        "UPDATE queue SET due_at = $3, claimed_node = NULL, claimed_epoch = NULL
         WHERE server_id = $1 AND message_id = $2"
    };
    match sql.execute(text, &[key.0.0.into(), key.1.0.into(), now.into()]).await? {
        0 => Ok((Retried::NotWaiting, Entry::Unchanged)),
        _ => Ok((Retried::Now, Entry::Queued(now))),
    }
}

/// The event of a cancelled message.
pub(crate) fn cancelled_event(new: &NewDelivery) -> NewEvent {
    let data = json!({ "status": new.status, "details": new.details }).to_string();
    NewEvent { kind: EventKind::Cancelled, data }
}
