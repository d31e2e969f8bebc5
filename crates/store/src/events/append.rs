//! Appends events, with the outbox rows of the subscribed webhooks.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{EventId, IdGenerator, MessageId, ServerId, Timestamp};

use super::event::{EventRow, NewEvent};
use crate::postgres::event_rows::EventRows;
use crate::postgres::pipeline;
use crate::sql::{Sql, read_only};
use crate::sqlite::rows::insert_event;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Appends an event about a server, not a message.
    pub async fn add_server_event(&self, server_id: ServerId, event: NewEvent) -> Result<()> {
        let now = self.clock.now();
        self.write_with_ids(move |sql, ids| {
            Box::pin(async move { append_server_event(sql, &ids, server_id, &event, now).await })
        })
        .await?;
        self.notifier.notify([server_id]);
        Ok(())
    }
}

/// Appends an event inside a transaction, on either engine.
pub(crate) async fn append(sql: &Sql<'_>, event: EventRow<'_>) -> Result<()> {
    match sql {
        Sql::Sqlite(connection) => {
            let connection = connection.lock();
            insert_event(&connection, &event)
        }
        Sql::Postgres(transaction) => {
            let mut events = EventRows::default();
            events.push(event);
            pipeline::execute_all(transaction, events.statements()).await
        }
        Sql::PostgresRead(_) => Err(read_only()),
    }
}

/// Appends an event about a server, not a message. Such events have their own `seq`.
pub(crate) async fn append_server_event(
    sql: &Sql<'_>,
    ids: &IdGenerator,
    server_id: ServerId,
    event: &NewEvent,
    at: Timestamp,
) -> Result<()> {
    if !sql.is_sqlite() {
        // The lock makes other nodes number their events after ours.
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
    let (message_id, id, data) = (MessageId(0), EventId(ids.next()), event.data.as_str().into());
    append(sql, EventRow { server_id, message_id, id, seq, kind: event.kind, at, test: false, data }).await
}
