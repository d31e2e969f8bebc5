//! The outcome of an attempt: status, delivery record, queue entry and event change together.

use postroad_model::{DeliveryId, EventId, IdGenerator, Status};

use super::{deliveries, events};
use crate::error::StoreError;
use crate::records::Outcome;
use crate::sql::Sql;

/// Settles one outcome. `false` if the message cannot take it any more (cancelled meanwhile, or settled by a node
/// that took over): then nothing is written.
pub(crate) async fn settle(sql: &Sql<'_>, outcome: &Outcome, ids: &IdGenerator) -> Result<bool, StoreError> {
    let (server, message) = (outcome.server_id.0, outcome.message_id.0);
    let new = &outcome.delivery;
    let found = sql
        .query_opt(
            "SELECT m.status, m.last_seq, s.test FROM messages m
             JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
             WHERE m.server_id = $1 AND m.id = $2",
            &[server.into(), message.into()],
        )
        .await?;
    let Some(row) = found else { return Ok(false) };
    let (status, seq) = (row.name(0, Status::parse)?, row.int(1)? + 1);
    if !status.can_become(new.status) {
        return Ok(false);
    }
    // The old status and seq in the condition make this the fence: of two nodes, one changes the row.
    let changed = sql
        .execute(
            "UPDATE messages SET status = $4, last_seq = $5, last_delivery_at = $6, hold_expiry = $7
             WHERE server_id = $1 AND id = $2 AND last_seq = $3",
            &[
                server.into(),
                message.into(),
                (seq - 1).into(),
                new.status.as_str().into(),
                seq.into(),
                new.at.into(),
                outcome.hold_expiry.filter(|_| new.status == Status::Held).into(),
            ],
        )
        .await?;
    if changed == 0 {
        return Ok(false);
    }
    deliveries::add(sql, outcome.server_id, outcome.message_id, DeliveryId(ids.next()), new).await?;
    let place = events::EventPlace {
        server_id: outcome.server_id,
        message_id: outcome.message_id,
        id: EventId(ids.next()),
        seq,
        at: new.at,
        test: row.flag(2)?,
    };
    events::add(sql, place, &outcome.event).await?;
    requeue_or_remove(sql, outcome).await?;
    Ok(true)
}

async fn requeue_or_remove(sql: &Sql<'_>, outcome: &Outcome) -> Result<(), StoreError> {
    let (server, message) = (outcome.server_id.0, outcome.message_id.0);
    if !outcome.delivery.status.is_queued() {
        sql.execute(
            "DELETE FROM queue WHERE server_id = $1 AND message_id = $2",
            &[server.into(), message.into()],
        )
        .await?;
        return Ok(());
    }
    // A failure that names no next attempt is due at once: a message that may still be sent stays queued.
    let due_at = outcome.delivery.next_attempt_at.unwrap_or(outcome.delivery.at);
    let attempt = i64::from(outcome.counts_as_attempt);
    sql.change(
        "UPDATE queue SET due_at = $3, attempts = attempts + $4 WHERE server_id = $1 AND message_id = $2",
        &[server.into(), message.into(), due_at.into(), attempt.into()],
    )
    .await
}
