//! Append events, with the outbox rows of the webhooks that subscribe to them.

use postroad_model::{EventId, IdGenerator, MessageId, ServerId, Timestamp};

use super::event::NewEvent;
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

impl Store {
    /// Tells of something that is about a server, not about a message.
    pub async fn add_server_event(&self, server_id: ServerId, event: NewEvent) -> Result<()> {
        let now = self.clock.now();
        self.write_with_ids(move |sql, ids| {
            Box::pin(async move { add_of_server(sql, &ids, server_id, &event, now).await })
        })
        .await?;
        self.notifier.notify([server_id]);
        Ok(())
    }
}

/// Where and when an event belongs. On SQLite `id` has to be made by the writer: the order of the ids is the stream's.
pub(crate) struct EventPlace {
    pub(crate) server_id: ServerId,
    pub(crate) message_id: MessageId,
    pub(crate) id: EventId,
    pub(crate) seq: i64,
    pub(crate) at: Timestamp,
    pub(crate) test: bool,
}

pub(crate) async fn add(sql: &Sql<'_>, place: EventPlace, event: &NewEvent) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO events (server_id, id, message_id, seq, kind, at, test, data)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &[
            place.server_id.0.into(),
            place.id.0.into(),
            place.message_id.0.into(),
            place.seq.into(),
            event.kind.as_str().into(),
            place.at.into(),
            place.test.into(),
            event.data.as_str().into(),
        ],
    )
    .await?;
    sql.execute(
        "INSERT INTO webhook_queue (server_id, webhook_id, event_id, due_at, attempts)
         SELECT server_id, id, $2, $3, 0 FROM webhooks WHERE server_id = $1 AND enabled = 1 AND (wants & $4) <> 0",
        &[place.server_id.0.into(), place.id.0.into(), place.at.into(), event.kind.bit().into()],
    )
    .await?;
    Ok(())
}

/// An event of a server, not of a message: these count their own `seq`.
pub(crate) async fn add_of_server(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    server_id: ServerId,
    event: &NewEvent,
    at: Timestamp,
) -> Result<(), StoreError> {
    if !sql.is_sqlite() {
        // Other nodes number their events after ours.
        let text = "SELECT id FROM servers WHERE id = $1 FOR NO KEY UPDATE";
        sql.query_opt(text, &[server_id.0.into()]).await?;
    }
    let last = sql
        .query_opt(
            "SELECT seq FROM events WHERE server_id = $1 AND message_id = 0 ORDER BY seq DESC LIMIT 1",
            &[server_id.0.into()],
        )
        .await?;
    let seq = last.map_or(Ok(0), |row| row.int(0))? + 1;
    let (message_id, id) = (MessageId(0), EventId(ids.next()));
    add(sql, EventPlace { server_id, message_id, id, seq, at, test: false }, event).await
}
