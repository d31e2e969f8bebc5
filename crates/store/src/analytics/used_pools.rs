//! Pool that each event is counted in: the one the message left from, or is to leave from.

use std::collections::HashMap;

use postroad_model::{EventKind, MessageId, ServerId};

use super::tally::{CountedEvent, EventData};
use crate::error::StoreError;
use crate::pools;
use crate::sql::{Sql, to_json};

/// Replaces the pools that were asked for by those that were used.
pub(crate) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    events: &mut [CountedEvent],
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let ids: HashMap<String, i64> =
        pools::list(sql).await?.into_iter().map(|pool| (pool.name, pool.id.0)).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let delivered = delivered_from(sql, server_id, events).await?;
    for event in events {
        let later = delivered.get(&event.message_id).filter(|_| comes_after_delivery(event.kind));
        if let Some(name) = event.data.used_pool().or_else(|| later?.used_pool()) {
            // 0 for the machine's own choice, and for a pool that is gone.
            event.facts.dimensions.pool_id = ids.get(name).copied().unwrap_or(0);
        }
    }
    Ok(())
}

/// These say nothing of pools themselves.
fn comes_after_delivery(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Opened
            | EventKind::Clicked
            | EventKind::Unsubscribed
            | EventKind::Complained
            | EventKind::Bounced
    )
}

async fn delivered_from(
    sql: &Sql<'_>,
    server_id: ServerId,
    events: &[CountedEvent],
) -> Result<HashMap<MessageId, EventData>, StoreError> {
    let needs_it =
        |event: &&CountedEvent| comes_after_delivery(event.kind) && event.data.used_pool().is_none();
    let mut messages: Vec<i64> = events.iter().filter(needs_it).map(|event| event.message_id.0).collect();
    messages.sort_unstable();
    messages.dedup();
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let text = if sql.is_sqlite() {
        // Left to itself SQLite would go through all events of the server.
        "SELECT e.message_id, e.data FROM json_each($2) AS wanted
         CROSS JOIN events e INDEXED BY events_by_message
             ON e.server_id = $1 AND e.message_id = wanted.value AND e.kind = 'message.delivered'"
    } else {
        "SELECT e.message_id, e.data
         FROM json_array_elements_text(CAST($2::text AS json)) AS wanted (message_id)
         JOIN events e ON e.server_id = $1 AND e.message_id = wanted.message_id::bigint
             AND e.kind = 'message.delivered'"
    };
    let rows = sql.query(text, &[server_id.0.into(), to_json(&messages).into()]).await?;
    rows.iter().map(|row| Ok((MessageId(row.int(0)?), EventData::parse(&row.text(1)?)))).collect()
}
