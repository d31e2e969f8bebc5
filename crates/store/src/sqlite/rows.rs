//! Writes events, delivery records and suppressions on SQLite, each by one cached statement.

use postroad_model::{ServerId, Timestamp};
use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::events::event::EventRow;
use crate::outcomes::NewDelivery;
use crate::outcomes::deliveries::DeliveryRow;
use crate::sql::storable;
use crate::suppressions::NewSuppression;
use crate::suppressions::record::address_key;

/// Inserts the event with the outbox rows of the subscribed webhooks. The writer must create the event's id, because
/// the order of ids is the order of the feed.
pub(crate) fn insert_event(connection: &Connection, event: &EventRow<'_>) -> Result<(), StoreError> {
    let EventRow { server_id, message_id, id, seq, kind, at, test, data } = event;
    connection
        .prepare_cached(
            "INSERT INTO events (server_id, id, message_id, seq, kind, at, test, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            server_id.0,
            id.0,
            message_id.0,
            seq,
            kind.as_str(),
            at.as_micros(),
            test,
            storable(data)
        ])?;
    connection
        .prepare_cached(
            "INSERT INTO webhook_queue (server_id, webhook_id, event_id, due_at, attempts)
             SELECT server_id, id, ?2, ?3, 0 FROM webhooks
             WHERE server_id = ?1 AND enabled = 1 AND (wants & ?4) <> 0",
        )?
        .execute(params![server_id.0, id.0, at.as_micros(), kind.bit()])?;
    Ok(())
}

pub(crate) fn insert_delivery(connection: &Connection, row: &DeliveryRow<'_>) -> Result<(), StoreError> {
    let DeliveryRow { server_id, message_id, id, record } = row;
    let NewDelivery {
        at,
        status,
        details,
        output,
        sent_with_ssl,
        log_id,
        duration_us,
        mx,
        remote_ip,
        source_ip,
        tls,
        code,
        enhanced_code,
        bounce_class,
        next_attempt_at,
        possible_duplicate,
        tls_policy,
        dkim,
    } = &**record;
    connection
        .prepare_cached(
            "INSERT INTO deliveries (server_id, message_id, id, at, status, details, output, sent_with_ssl, log_id,
                                     duration_us, mx, remote_ip, source_ip, tls, code, enhanced_code, bounce_class,
                                     next_attempt_at, possible_duplicate, tls_policy, dkim)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
                     ?21)",
        )?
        .execute(params![
            server_id.0,
            message_id.0,
            id.0,
            at.as_micros(),
            status.as_str(),
            storable(details),
            storable(output),
            sent_with_ssl,
            storable(log_id),
            duration_us,
            mx.as_deref().map(storable),
            remote_ip.as_deref().map(storable),
            source_ip.as_deref().map(storable),
            tls.as_deref().map(storable),
            code,
            enhanced_code.as_deref().map(storable),
            bounce_class.as_deref().map(storable),
            next_attempt_at.map(Timestamp::as_micros),
            possible_duplicate,
            tls_policy.as_deref().map(storable),
            dkim.as_deref().map(storable),
        ])?;
    Ok(())
}

/// Writes a suppression, but keeps an existing row unless that row has expired or the new suppression lasts longer.
/// Returns whether the new suppression was written.
pub(crate) fn insert_suppression(
    connection: &Connection,
    server_id: ServerId,
    new: &NewSuppression,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let written = connection
        .prepare_cached(
            "INSERT INTO suppressions (server_id, address, reason, details, origin_message_id, created_at, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (server_id, address) DO UPDATE SET reason = excluded.reason, details = excluded.details,
                 origin_message_id = excluded.origin_message_id, created_at = excluded.created_at,
                 expires_at = excluded.expires_at
             WHERE suppressions.expires_at <= excluded.created_at
                 OR suppressions.expires_at < coalesce(excluded.expires_at, 9223372036854775807)",
        )?
        .execute(params![
            server_id.0,
            storable(&address_key(&new.address)),
            new.reason.as_str(),
            storable(&new.details),
            new.origin_message_id.map(|id| id.0),
            at.as_micros(),
            new.expires_at.map(Timestamp::as_micros),
        ])?;
    Ok(written > 0)
}
