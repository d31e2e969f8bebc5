//! `accept` inside the writer's group: five inserts for a send with one recipient, all statements cached.

use std::sync::{Mutex, PoisonError};

use postroad_model::{EventKind, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use crate::body::INLINE_BYTES_MAX;
use crate::error::StoreError;
use crate::initial::InitialRow;
use crate::records::{Accepted, Idempotency, NewRecipient, NewSend, StoredAnswer};
use crate::sql::to_json;

pub(super) fn accept(connection: &Mutex<Connection>, send: &NewSend) -> Result<Accepted, StoreError> {
    let connection = &*connection.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(key) = &send.idempotency
        && let Some(answer) = claim_key(connection, send, key)?
    {
        return Ok(Accepted::Repeated(answer));
    }
    insert_send(connection, send)?;
    let initial = InitialRow::of(send);
    for recipient in &send.recipients {
        insert_recipient(connection, send, recipient, &initial)?;
    }
    Ok(Accepted::Stored)
}

/// Writes the key, or returns what it was used for before. The writer is alone, so looking first is enough.
fn claim_key(
    connection: &Connection,
    send: &NewSend,
    key: &Idempotency,
) -> Result<Option<StoredAnswer>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT fingerprint, answer FROM idempotency_keys WHERE server_id = ?1 AND key = ?2 AND expires_at > ?3",
        )?
        .query_row(params![send.info.server_id.0, key.key, send.info.created_at.as_micros()], |row| {
            Ok(StoredAnswer { fingerprint: row.get(0)?, answer: row.get(1)? })
        })
        .optional()?;
    if found.is_none() {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO idempotency_keys (server_id, key, fingerprint, answer, expires_at)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                send.info.server_id.0,
                key.key,
                key.fingerprint,
                key.answer,
                key.expires_at.as_micros()
            ])?;
    }
    Ok(found)
}

fn insert_send(connection: &Connection, send: &NewSend) -> Result<(), StoreError> {
    let info = &send.info;
    connection
        .prepare_cached(
            "INSERT INTO sends (server_id, id, credential_id, message_id, mail_from, subject, tag, metadata, options,
                                size, direction, bounce, received_with_ssl, test, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            info.server_id.0,
            info.id.0,
            info.credential_id.map(|id| id.0),
            info.message_id,
            info.mail_from,
            info.subject,
            info.tag,
            to_json(&info.metadata),
            to_json(&info.options),
            info.size as i64,
            info.direction.as_str(),
            info.bounce,
            info.received_with_ssl,
            info.test,
            info.created_at.as_micros(),
        ])?;
    let inline = Some(&send.compressed()[..]).filter(|data| data.len() <= INLINE_BYTES_MAX);
    connection
        .prepare_cached("INSERT INTO bodies (send_id, data) VALUES (?1, ?2)")?
        .execute(params![info.id.0, inline])?;
    Ok(())
}

fn insert_recipient(
    connection: &Connection,
    send: &NewSend,
    recipient: &NewRecipient,
    initial: &InitialRow<'_>,
) -> Result<(), StoreError> {
    let (server, message, at) = (send.info.server_id.0, recipient.id.0, send.info.created_at.as_micros());
    connection
        .prepare_cached(
            "INSERT INTO messages (server_id, id, send_id, token, rcpt_to, status, hold_expiry, bounce_for_id,
                                   last_delivery_at, last_seq)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9)",
        )?
        .execute(params![
            server,
            message,
            send.info.id.0,
            recipient.token.0,
            recipient.rcpt_to,
            initial.status.as_str(),
            initial.hold_expiry.map(Timestamp::as_micros),
            initial.delivery.is_some().then_some(at),
            initial.last_seq(),
        ])?;
    let mut insert_event = connection.prepare_cached(
        "INSERT INTO events (server_id, id, message_id, seq, kind, at, test, data)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let accepted = EventKind::Accepted.as_str();
    insert_event.execute(params![
        server,
        recipient.accepted_event.0,
        message,
        1,
        accepted,
        at,
        send.info.test,
        "{}"
    ])?;
    if let Some(due_at) = initial.due_at {
        connection
            .prepare_cached(
                "INSERT INTO queue (server_id, message_id, domain, due_at, expires_at, attempts)
                 VALUES (?1, ?2, ?3, ?4, ?5, 0)",
            )?
            .execute(params![
                server,
                message,
                recipient.domain.as_str(),
                due_at.as_micros(),
                send.info.options.expires_at.map(Timestamp::as_micros),
            ])?;
    }
    if let (Some(first), Some((delivery_id, event_id))) = (&initial.delivery, recipient.first_delivery) {
        connection
            .prepare_cached(
                "INSERT INTO deliveries (server_id, message_id, id, at, status, details, output, sent_with_ssl, log_id)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, '', 0, '')",
            )?
            .execute(params![server, message, delivery_id.0, at, initial.status.as_str(), first.details])?;
        let kind = first.event.as_str();
        insert_event.execute(params![server, event_id.0, message, 2, kind, at, send.info.test, "{}"])?;
    }
    Ok(())
}
