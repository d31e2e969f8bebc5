//! Finds the attempt whose pool, source address and TLS version an event is counted under. An event after delivery,
//! such as an open, is counted under the attempt that delivered the message.

use std::collections::HashMap;

use postroad_model::{EventKind, MessageId, ServerId};

use super::tally::{CountedEvent, EventData};
use crate::error::StoreError;
use crate::pools;
use crate::sql::{Sql, to_json};

/// Replaces requested pools by the pools that were used, and fills in the values that only an attempt determines.
pub(crate) async fn fill_in(
    sql: &Sql<'_>,
    server_id: ServerId,
    events: &mut [CountedEvent],
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let pool_ids: HashMap<String, i64> =
        pools::list(sql).await?.into_iter().map(|pool| (pool.name, pool.id.0)).collect();
    let delivered_data = find_delivered_data(sql, server_id, events).await?;
    for event in events {
        let delivering_attempt =
            delivered_data.get(&event.message_id).filter(|_| comes_after_delivery(event.kind));
        let dimensions = &mut event.facts.dimensions;
        event.data.bounce_class().clone_into(&mut dimensions.bounce_class);
        let own_attempt = Some(&event.data).filter(|data| data.is_attempt());
        let Some(attempt) = own_attempt.or(delivering_attempt) else { continue };
        if !pool_ids.is_empty() {
            // 0 if the operating system chose the source address, or if the pool was deleted.
            dimensions.pool_id = pool_ids.get(attempt.used_pool()).copied().unwrap_or(0);
        }
        attempt.fill_in_attempt(dimensions);
    }
    Ok(())
}

/// Whether events of this kind can come after delivery.
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

/// Data of the `message.delivered` events of messages that have later events among `events`.
async fn find_delivered_data(
    sql: &Sql<'_>,
    server_id: ServerId,
    events: &[CountedEvent],
) -> Result<HashMap<MessageId, EventData>, StoreError> {
    let is_later = |event: &&CountedEvent| comes_after_delivery(event.kind) && !event.data.is_attempt();
    let mut messages: Vec<i64> = events.iter().filter(is_later).map(|event| event.message_id.0).collect();
    messages.sort_unstable();
    messages.dedup();
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let text = if sql.is_sqlite() {
        // SQLite would otherwise scan all events of the server.
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
