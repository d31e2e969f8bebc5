//! Stores one outcome inside the writer's group, with a few cached statements.

use postroad_model::{DeliveryId, EventId, IdGenerator, Status, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::claims::EntryAfter;
use super::rows::{insert_delivery, insert_event, insert_suppression};
use crate::error::StoreError;
use crate::events::event::EventRow;
use crate::outcomes::Outcome;
use crate::outcomes::deliveries::DeliveryRow;
use crate::outcomes::outcome::AttemptMatch;
use crate::outcomes::source_tally::SourceTally;
use crate::sql::storable;

/// Result of storing one outcome.
pub(super) enum SettleResult {
    Recorded(EntryAfter),
    /// The outcome is recorded already, by a commit that was reported as failed. Nothing was written.
    AlreadyRecorded(EntryAfter),
    /// The outcome is no longer possible for the message. Nothing was written.
    Impossible,
}

pub(super) fn settle(
    connection: &Connection,
    outcome: &Outcome,
    ids: &IdGenerator,
) -> Result<SettleResult, StoreError> {
    let (server, message) = (outcome.server_id.0, outcome.message_id.0);
    let new = &outcome.delivery;
    let found = connection
        .prepare_cached(
            "SELECT m.status, m.last_seq, s.test, q.due_at FROM messages m
             JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
             JOIN queue q ON q.server_id = m.server_id AND q.message_id = m.id
             WHERE m.server_id = ?1 AND m.id = ?2",
        )?
        .query_row(params![server, message], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?, row.get(3)?))
        })
        .optional()?;
    let Some((status, last_seq, test, due_at)) = found else { return Ok(SettleResult::Impossible) };
    let due_at = Timestamp::from_micros(due_at);
    match outcome.match_attempt(due_at) {
        // The caller has compared the claim in memory. If the entry's due time changed while the entry was being
        // claimed, the message was sent anyway, so the outcome counts.
        AttemptMatch::Same | AttemptMatch::Other => {}
        AttemptMatch::Recorded if outcome.keep_claim => {
            return Ok(SettleResult::AlreadyRecorded(EntryAfter::Kept(due_at)));
        }
        AttemptMatch::Recorded => return Ok(SettleResult::AlreadyRecorded(EntryAfter::Queued(due_at))),
    }
    let status = Status::parse(&status).ok_or_else(|| {
        StoreError::Internal(format!("message {message} has the unknown status {status:?}"))
    })?;
    if !status.can_become(new.status) {
        return Ok(SettleResult::Impossible);
    }
    let (seq, at) = (last_seq + 1, new.at.as_micros());
    connection
        .prepare_cached(
            "UPDATE messages SET status = ?3, last_seq = ?4, last_delivery_at = ?5, hold_expiry = ?6
             WHERE server_id = ?1 AND id = ?2",
        )?
        .execute(params![
            server,
            message,
            new.status.as_str(),
            seq,
            at,
            outcome.hold_expiry.filter(|_| new.status == Status::Held).map(Timestamp::as_micros),
        ])?;
    let delivery_id = DeliveryId(ids.next());
    let row = DeliveryRow::of(outcome.server_id, outcome.message_id, delivery_id, new);
    insert_delivery(connection, &row)?;
    let event = EventRow {
        server_id: outcome.server_id,
        message_id: outcome.message_id,
        id: EventId(ids.next()),
        seq,
        kind: outcome.event.kind,
        at: new.at,
        test,
        data: outcome.event.data.as_str().into(),
    };
    insert_event(connection, &event)?;
    if let Some(transcript) = &outcome.transcript {
        connection
            .prepare_cached(
                "INSERT INTO delivery_transcripts (server_id, message_id, delivery_id, transcript)
                 VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![server, message, delivery_id.0, storable(transcript)])?;
    }
    if let Some(suppression) = &outcome.suppress {
        insert_suppression(connection, outcome.server_id, suppression, new.at)?;
    }
    requeue_or_remove(connection, outcome).map(SettleResult::Recorded)
}

fn requeue_or_remove(connection: &Connection, outcome: &Outcome) -> Result<EntryAfter, StoreError> {
    let (server, message) = (outcome.server_id.0, outcome.message_id.0);
    if !outcome.delivery.status.is_queued() {
        connection
            .prepare_cached("DELETE FROM queue WHERE server_id = ?1 AND message_id = ?2")?
            .execute(params![server, message])?;
        return Ok(EntryAfter::Gone);
    }
    let due_at = outcome.due_at();
    connection
        .prepare_cached(
            "UPDATE queue SET due_at = ?3, attempts = attempts + ?4, source_id = ?5
             WHERE server_id = ?1 AND message_id = ?2",
        )?
        .execute(params![
            server,
            message,
            due_at.as_micros(),
            outcome.counts_as_attempt,
            outcome.retry_source_id.map(|id| id.0),
        ])?;
    Ok(if outcome.keep_claim { EntryAfter::Kept(due_at) } else { EntryAfter::Queued(due_at) })
}

/// Adds the sent and bounced messages to the counts of their source addresses.
pub(super) fn add_source_counts(connection: &Connection, counts: &SourceTally) -> Result<(), StoreError> {
    let mut add = connection.prepare_cached(
        "INSERT INTO source_days (source_id, provider, day, sent, bounced) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (source_id, provider, day) DO UPDATE SET sent = sent + excluded.sent, bounced = bounced + excluded.bounced",
    )?;
    for ((source, provider, day), (sent, bounced)) in counts.iter() {
        add.execute(params![source.0, &**provider, day, sent, bounced])?;
    }
    Ok(())
}
