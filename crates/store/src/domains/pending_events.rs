//! Events of domains. A change of a domain writes its event in the same transaction. A process that cannot create event
//! ids (a tool on PostgreSQL) stores the event with the domain (column `untold`), and the next node writes it.

use postroad_model::{DomainId, EventKind, IdGenerator, ServerId, Timestamp};
use serde_json::{Value, json};

use super::records::Domain;
use crate::error::StoreError;
use crate::events::{NewEvent, append};
use crate::sql::Sql;

/// Maximum number of events stored with one domain; beyond that the oldest are dropped, because no node has run for a
/// long time.
const WAITING_MAX: usize = 10;

/// Writes the events stored with the domain, then `news`. Without ids it stores `news` with the domain instead.
pub(super) async fn write(
    sql: &Sql<'_>,
    ids: Option<&IdGenerator>,
    domain: &Domain,
    news: Option<(EventKind, Value)>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = sql.query_opt("SELECT untold FROM domains WHERE id = $1", &[domain.id.0.into()]).await?;
    let stored = row.ok_or(StoreError::NotFound)?.text_opt(0)?;
    let mut waiting: Vec<(String, Value)> =
        stored.as_deref().map(serde_json::from_str).and_then(Result::ok).unwrap_or_default();
    waiting.extend(news.map(|(kind, data)| (kind.as_str().to_owned(), data)));
    let Some(ids) = ids else {
        waiting.drain(..waiting.len().saturating_sub(WAITING_MAX));
        let text = json!(waiting).to_string();
        return sql
            .change("UPDATE domains SET untold = $2 WHERE id = $1", &[domain.id.0.into(), text.into()])
            .await;
    };
    for (kind, data) in &waiting {
        if let Some(kind) = EventKind::parse(kind) {
            add_event(sql, ids, domain, kind, data, now).await?;
        }
    }
    if stored.is_some() {
        sql.change("UPDATE domains SET untold = NULL WHERE id = $1", &[domain.id.0.into()]).await?;
    }
    Ok(())
}

/// Whether events are stored with any domain.
pub(super) async fn has_waiting(sql: &Sql<'_>) -> Result<bool, StoreError> {
    let text = "SELECT id FROM domains WHERE untold IS NOT NULL LIMIT 1";
    Ok(sql.query_opt(text, &[]).await?.is_some())
}

/// Locks and returns some domains with stored events. Other nodes skip them until the transaction ends.
pub(super) async fn claim_waiting(sql: &Sql<'_>) -> Result<Vec<DomainId>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT id FROM domains WHERE untold IS NOT NULL ORDER BY id LIMIT 20"
    } else {
        "SELECT id FROM domains WHERE untold IS NOT NULL ORDER BY id LIMIT 20 FOR UPDATE SKIP LOCKED"
    };
    sql.query(text, &[]).await?.iter().map(|row| Ok(DomainId(row.int(0)?))).collect()
}

/// Appends the event to every server that may send from the domain.
async fn add_event(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    domain: &Domain,
    kind: EventKind,
    data: &Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    let rows = if let Some(id) = domain.server_id {
        sql.query("SELECT id, name FROM servers WHERE id = $1", &[id.0.into()]).await?
    } else {
        // In a fixed order, to avoid deadlocks.
        let text = "SELECT id, name FROM servers WHERE account_id = $1 ORDER BY id";
        sql.query(text, &[domain.account_id.0.into()]).await?
    };
    for row in rows {
        let mut data = data.clone();
        if kind == EventKind::DomainFailing {
            data["server"] =
                json!({ "id": row.int(0)?, "name": row.text(1)?, "account": domain.account_name });
        }
        let event = NewEvent { kind, data: data.to_string() };
        append::append_of_server(sql, ids, ServerId(row.int(0)?), &event, now).await?;
    }
    Ok(())
}
