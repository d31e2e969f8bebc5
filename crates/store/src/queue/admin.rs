//! Retries and cancels waiting messages.

use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{
    DomainName, EmailAddress, EventKind, IdGenerator, MessageId, ServerId, Status, Timestamp,
};
use serde_json::json;

use super::release::{ReleaseRules, release};
use super::retry_result::RetryResult;
use super::waiting::{EntryChange, Key, change_status, find, lock_and_check_sending, remove_entry};
use crate::error::StoreError;
use crate::events::NewEvent;
use crate::messages::message;
use crate::outcomes::NewDelivery;
use crate::sql::Sql;
use crate::suppressions::lookup;
use crate::{ChangeDescription, Engine, Result, SqlOperationWithIds, Store};

/// Result of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelResult {
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
    /// and suppressions do not apply to mail to `exempt_domain`.
    pub async fn retry(
        &self,
        server_id: ServerId,
        id: MessageId,
        exempt_domain: DomainName,
    ) -> Result<RetryResult> {
        let by_operator = true;
        self.retry_for(server_id, id, WaitingFor::Anything, by_operator, exempt_domain).await
    }

    /// `retry` for callers other than the operator, if the message waits for `only`. These callers cannot release
    /// messages that a ceiling on the server's mode holds.
    pub async fn retry_if(
        &self,
        server_id: ServerId,
        id: MessageId,
        only: WaitingFor,
        exempt_domain: DomainName,
    ) -> Result<RetryResult> {
        let by_operator = false;
        self.retry_for(server_id, id, only, by_operator, exempt_domain).await
    }

    async fn retry_for(
        &self,
        server_id: ServerId,
        id: MessageId,
        only: WaitingFor,
        by_operator: bool,
        exempt_domain: DomainName,
    ) -> Result<RetryResult> {
        let (now, key) = (self.clock.now(), (server_id, id));
        let operation: SqlOperationWithIds<(RetryResult, EntryChange)> = Box::new(move |sql, ids| {
            Box::pin(async move { retry(sql, &ids, key, only, by_operator, &exempt_domain, now).await })
        });
        let operation = self.with_audit_entry(operation, move |(retried, _)| {
            matches!(retried, RetryResult::Now | RetryResult::Released).then(|| describe_message(id))
        });
        let _permit = self.acquire_audit_permit(server_id).await;
        let (retried, entry) = match &*self.engine {
            Engine::Sqlite { engine, ids } => {
                engine.change_waiting(key, Arc::clone(ids), RetryResult::TooLate, operation).await?
            }
            Engine::Postgres(engine) => engine.change_waiting(key, operation).await?,
        };
        self.notify_entry_change(server_id, entry);
        Ok(retried)
    }

    /// Cancels a message that is queued or held. Ends a claim on the message.
    pub async fn cancel(&self, server_id: ServerId, id: MessageId) -> Result<CancelResult> {
        self.cancel_if(server_id, id, WaitingFor::Anything).await
    }

    /// Cancels a message if it waits for `only`.
    pub async fn cancel_if(
        &self,
        server_id: ServerId,
        id: MessageId,
        only: WaitingFor,
    ) -> Result<CancelResult> {
        let (now, key) = (self.clock.now(), (server_id, id));
        let operation: SqlOperationWithIds<(CancelResult, EntryChange)> =
            Box::new(move |sql, ids| Box::pin(async move { cancel(sql, &ids, key, only, now).await }));
        let operation = self.with_audit_entry(operation, move |(cancelled, _)| {
            matches!(cancelled, CancelResult::Done(_)).then(|| describe_message(id))
        });
        let _permit = self.acquire_audit_permit(server_id).await;
        let (cancelled, entry) = match &*self.engine {
            Engine::Sqlite { engine, ids } => {
                engine.change_waiting(key, Arc::clone(ids), CancelResult::TooLate, operation).await?
            }
            Engine::Postgres(engine) => engine.change_waiting(key, operation).await?,
        };
        self.notify_entry_change(server_id, entry);
        Ok(cancelled)
    }

    /// Notifies delivery and readers of events after a change of a queue entry.
    pub(super) fn notify_entry_change(&self, server_id: ServerId, entry: EntryChange) {
        if matches!(entry, EntryChange::Queued(_)) {
            self.queue_changes.send_modify(|count| *count += 1);
        }
        if entry != EntryChange::Unchanged {
            self.notifier.notify([server_id]);
        }
    }
}

/// Description of a changed message for the audit log.
pub(super) fn describe_message(id: MessageId) -> ChangeDescription {
    ChangeDescription::from_iter([("message".to_owned(), id.0.into())])
}

pub(crate) async fn cancel(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    only: WaitingFor,
    now: Timestamp,
) -> Result<(CancelResult, EntryChange), StoreError> {
    if lock_and_check_sending(sql, key).await? {
        return Ok((CancelResult::TooLate, EntryChange::Unchanged));
    }
    let state = find(sql, key).await?.filter(|state| only.includes(state.status));
    let Some(state) = state else { return Ok((CancelResult::NotWaiting, EntryChange::Unchanged)) };
    let (status, details) = match state.status {
        Status::Held => (Status::HoldCancelled, "The held message was cancelled"),
        _ => (Status::Cancelled, "The message was cancelled before it was sent"),
    };
    let (delivery, hold_expiry) = (NewDelivery::local(now, status, details), None);
    let event = cancelled_event(&delivery);
    if !change_status(sql, ids, key, &state, &delivery, &event, hold_expiry).await? {
        return Ok((CancelResult::NotWaiting, EntryChange::Unchanged));
    }
    remove_entry(sql, key).await?;
    Ok((CancelResult::Done(status), EntryChange::Gone))
}

pub(crate) async fn retry(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    key: Key,
    only: WaitingFor,
    by_operator: bool,
    exempt_domain: &DomainName,
    now: Timestamp,
) -> Result<(RetryResult, EntryChange), StoreError> {
    if lock_and_check_sending(sql, key).await? {
        return Ok((RetryResult::TooLate, EntryChange::Unchanged));
    }
    let state = find(sql, key).await?.filter(|state| only.includes(state.status));
    let Some(state) = state else { return Ok((RetryResult::NotWaiting, EntryChange::Unchanged)) };
    let is_held = state.status == Status::Held;
    if !is_held && !state.status.is_queued() {
        return Ok((RetryResult::NotWaiting, EntryChange::Unchanged));
    }
    let (server_id, message_id) = key;
    let message = message::find(sql, server_id, message_id).await?.ok_or(StoreError::NotFound)?;
    let is_exempt =
        EmailAddress::parse(&message.rcpt_to).is_ok_and(|address| address.domain() == exempt_domain);
    if !is_exempt && let Some(found) = lookup::find(sql, server_id, message.rcpt_to.clone(), now).await? {
        let suppressed = RetryResult::Suppressed { reason: found.reason, since: found.created_at };
        return Ok((suppressed, EntryChange::Unchanged));
    }
    if is_held {
        return release(sql, ids, key, &message, &state, ReleaseRules { by_operator, is_exempt }, now).await;
    }
    // A claim made for the old due time ends: `begin` answers `Gone`.
    let text = if sql.is_sqlite() {
        "UPDATE queue SET due_at = $3 WHERE server_id = $1 AND message_id = $2"
    } else {
        "UPDATE queue SET due_at = $3, claimed_node = NULL, claimed_epoch = NULL
         WHERE server_id = $1 AND message_id = $2"
    };
    match sql.execute(text, &[server_id.0.into(), message_id.0.into(), now.into()]).await? {
        0 => Ok((RetryResult::NotWaiting, EntryChange::Unchanged)),
        _ => Ok((RetryResult::Now, EntryChange::Queued(now))),
    }
}

/// The event of a cancelled message.
pub(crate) fn cancelled_event(delivery: &NewDelivery) -> NewEvent {
    let data = json!({ "status": delivery.status, "details": delivery.details }).to_string();
    NewEvent { kind: EventKind::Cancelled, data }
}
