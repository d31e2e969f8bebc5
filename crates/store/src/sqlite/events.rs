//! Appending an event inside the writer's group, with the outbox rows of the webhooks that want it. The id is made
//! here: the writer is alone, so the order of the ids is the order of the commits.

use postroad_model::{EventKind, IdGenerator};
use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::events::NewEvent;

/// An event of a message.
pub(super) struct NewRow<'a> {
    pub(super) server: i64,
    pub(super) message: i64,
    pub(super) seq: i64,
    pub(super) kind: EventKind,
    pub(super) at: i64,
    pub(super) test: bool,
    pub(super) data: &'a str,
}

pub(super) fn append(
    connection: &Connection,
    ids: &IdGenerator,
    event: &NewRow<'_>,
) -> Result<(), StoreError> {
    let id = ids.next();
    connection
        .prepare_cached(
            "INSERT INTO events (server_id, id, message_id, seq, kind, at, test, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            event.server,
            id,
            event.message,
            event.seq,
            event.kind.as_str(),
            event.at,
            event.test,
            event.data
        ])?;
    connection
        .prepare_cached(
            "INSERT INTO webhook_queue (server_id, webhook_id, event_id, due_at, attempts)
             SELECT server_id, id, ?2, ?3, 0 FROM webhooks
             WHERE server_id = ?1 AND enabled = 1 AND (wants & ?4) <> 0",
        )?
        .execute(params![event.server, id, event.at, event.kind.bit()])?;
    Ok(())
}

/// An event of a server, not of a message: these count their own `seq`.
pub(super) fn append_of_server(
    connection: &Connection,
    ids: &IdGenerator,
    server: i64,
    event: &NewEvent,
    at: i64,
) -> Result<(), StoreError> {
    let last: i64 = connection
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM events WHERE server_id = ?1 AND message_id = 0")?
        .query_row([server], |row| row.get(0))?;
    let NewEvent { kind, data } = event;
    append(connection, ids, &NewRow { server, message: 0, seq: last + 1, kind: *kind, at, test: false, data })
}
