//! Events of domains, written for each server that may send from the domain. A change of a domain writes its events in
//! the same transaction, at most `EVENTS_PER_TRANSACTION`. A process that cannot create event ids (a tool on
//! PostgreSQL) writes none. Events that are not written yet are stored with the domain (column `untold`), and a node
//! writes them later.

use std::collections::VecDeque;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, EventKind, IdGenerator, ServerId, Timestamp};
use serde_json::{Value, json};

use super::domain::Domain;
use super::find;
use crate::error::StoreError;
use crate::events::{NewEvent, append};
use crate::sql::Sql;
use crate::{Result, Store};

/// Maximum number of events stored with one domain. There are more only if no node has written them for a long time;
/// then the oldest are dropped.
const PENDING_PER_DOMAIN_MAX: usize = 10;

/// Maximum number of events that one transaction writes: accepts wait for the transaction.
pub(super) const EVENTS_PER_TRANSACTION: usize = 200;

#[boxed_futures]
impl Store {
    /// Writes the events of domains that earlier transactions did not write: events of processes that cannot create
    /// event ids, and events for an account's servers beyond `EVENTS_PER_TRANSACTION`. Writes some at a time, and skips
    /// domains whose events another node is writing.
    pub async fn write_domain_events(&self) -> Result<()> {
        while self.read(move |sql| Box::pin(has_pending(sql))).await? {
            let now = self.clock.now();
            let domains = self
                .write_with_ids(move |sql, ids| Box::pin(async move { write_pending(sql, &ids, now).await }))
                .await?;
            if domains == 0 {
                break;
            }
            self.notifier.notify_all();
        }
        Ok(())
    }
}

/// Event of a domain, for the servers with ids above `after` that may send from it. Stored as an array;
/// arrays of earlier versions lack `after`.
struct PendingEvent {
    kind: String,
    data: Value,
    after: i64,
}

impl PendingEvent {
    fn read(stored: &Value) -> Option<Self> {
        let kind = stored.get(0)?.as_str()?.to_owned();
        let after = stored.get(2).and_then(Value::as_i64).unwrap_or(0);
        Some(Self { kind, data: stored.get(1)?.clone(), after })
    }

    fn to_value(&self) -> Value {
        json!([self.kind, self.data, self.after])
    }
}

/// Writes the events stored with the domain, then `new_event`, at most `budget` events; returns the rest of the budget.
/// Stores unwritten events with the domain; without `ids`, no event is written.
pub(super) async fn write(
    sql: &Sql<'_>,
    ids: Option<&IdGenerator>,
    domain: &Domain,
    new_event: Option<(EventKind, Value)>,
    mut budget: usize,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let row = sql.query_opt("SELECT untold FROM domains WHERE id = $1", &[domain.id.0.into()]).await?;
    let stored = row.ok_or(StoreError::NotFound)?.text_opt(0)?;
    let known: Vec<Value> =
        stored.as_deref().map(serde_json::from_str).and_then(Result::ok).unwrap_or_default();
    let mut pending: VecDeque<PendingEvent> = known.iter().filter_map(PendingEvent::read).collect();
    pending.extend(new_event.map(|(kind, data)| PendingEvent {
        kind: kind.as_str().to_owned(),
        data,
        after: 0,
    }));
    if let Some(ids) = ids {
        // The events are written one after the other, so that every server gets them in this order.
        while let Some(first) = pending.front_mut() {
            let is_written = add_events(sql, ids, domain, first, &mut budget, now).await?;
            if !is_written {
                break;
            }
            pending.pop_front();
        }
    }
    pending.drain(..pending.len().saturating_sub(PENDING_PER_DOMAIN_MAX));
    let left: Vec<Value> = pending.iter().map(PendingEvent::to_value).collect();
    let left = (!left.is_empty()).then(|| json!(left).to_string());
    if left != stored {
        let params = [domain.id.0.into(), left.into()];
        sql.execute_one("UPDATE domains SET untold = $2 WHERE id = $1", &params).await?;
    }
    Ok(budget)
}

/// Writes pending events of some domains; returns the number of domains examined.
async fn write_pending(sql: &Sql<'_>, ids: &IdGenerator, now: Timestamp) -> Result<usize, StoreError> {
    let domain_ids = claim_domains(sql).await?;
    let mut budget = EVENTS_PER_TRANSACTION;
    for id in &domain_ids {
        if let Some(domain) = find::find_by_id(sql, *id).await? {
            budget = write(sql, Some(ids), &domain, None, budget, now).await?;
        }
    }
    Ok(domain_ids.len())
}

/// Whether events are stored with any domain.
async fn has_pending(sql: &Sql<'_>) -> Result<bool, StoreError> {
    let text = "SELECT id FROM domains WHERE untold IS NOT NULL LIMIT 1";
    Ok(sql.query_opt(text, &[]).await?.is_some())
}

/// Locks and returns some domains with stored events. Other nodes skip them until the transaction ends.
async fn claim_domains(sql: &Sql<'_>) -> Result<Vec<DomainId>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT id FROM domains WHERE untold IS NOT NULL ORDER BY id LIMIT 20"
    } else {
        "SELECT id FROM domains WHERE untold IS NOT NULL ORDER BY id LIMIT 20 FOR UPDATE SKIP LOCKED"
    };
    sql.query(text, &[]).await?.iter().map(|row| Ok(DomainId(row.int(0)?))).collect()
}

/// Appends the event for the next servers that may send from the domain, at most `budget`. Returns whether no servers
/// are left.
async fn add_events(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    domain: &Domain,
    pending: &mut PendingEvent,
    budget: &mut usize,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let Some(kind) = EventKind::parse(&pending.kind) else { return Ok(true) };
    let (text, owner) = match domain.server_id {
        Some(id) => ("SELECT id, name FROM servers WHERE id = $1 AND id > $2 LIMIT $3", id.0),
        // Servers are locked in a fixed order, to avoid deadlocks.
        None => (
            "SELECT id, name FROM servers WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3",
            domain.account_id.0,
        ),
    };
    let limit = *budget;
    let rows = sql.query(text, &[owner.into(), pending.after.into(), (limit as i64).into()]).await?;
    *budget -= rows.len();
    for row in &rows {
        pending.after = row.int(0)?;
        let mut data = pending.data.clone();
        if kind == EventKind::DomainFailing {
            data["server"] =
                json!({ "id": row.int(0)?, "name": row.text(1)?, "account": domain.account_name });
        }
        let event = NewEvent { kind, data: data.to_string() };
        append::append_server_event(sql, ids, ServerId(row.int(0)?), &event, now).await?;
    }
    Ok(rows.len() < limit)
}
