//! Appending an event inside the writer's group, with the outbox rows of the webhooks that want it. The id is made
//! here: the writer is alone, so the order of the ids is the order of the commits.

use postroad_model::{EventKind, IdGenerator};
use rusqlite::{Connection, params};

use crate::error::StoreError;

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
