//! Events of a message, in the order of their `seq`.

use postroad_model::{EventId, EventKind, MessageId, ServerId, Timestamp};

use crate::error::StoreError;
use crate::records::{Event, NewEvent};
use crate::sql::Sql;

/// Where and when an event belongs.
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
    Ok(())
}

pub(crate) async fn list_of_message(
    sql: &Sql<'_>,
    server_id: ServerId,
    message_id: MessageId,
) -> Result<Vec<Event>, StoreError> {
    let rows = sql
        .query(
            "SELECT id, seq, kind, at, test, data FROM events
             WHERE server_id = $1 AND message_id = $2 ORDER BY seq",
            &[server_id.0.into(), message_id.0.into()],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Event {
                id: EventId(row.int(0)?),
                message_id,
                seq: row.int(1)?,
                at: row.time(3)?,
                test: row.flag(4)?,
                event: NewEvent { kind: row.name(2, EventKind::parse)?, data: row.text(5)? },
            })
        })
        .collect()
}
