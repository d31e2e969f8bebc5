//! `begin` on PostgreSQL: one statement marks the entries and gives back their messages.

use std::collections::HashMap;
use std::sync::Arc;

use deadpool_postgres::ClientWrapper;
use postroad_model::{
    CredentialId, Direction, MessageId, MessageToken, SendId, ServerId, Status, SuppressionReason, Timestamp,
};
use tokio_postgres::Row;

use super::Node;
use crate::error::StoreError;
use crate::records::{Begin, Begun, Message, SendInfo, Suppression};

/// What other nodes suppressed since a message was due is looked for as well, with ten seconds for their clocks; by
/// the newest one, because for a bound that it does not know the planner would read the whole table.
///
/// The planner believes what the last analysis said of the queue, and that it was empty is what it says most of the time.
/// `= ANY` keeps a bad plan from comparing each entry of the batch with each of the queue, and `claimed_node + 0` is not
/// what the index of claims is by, which would be read as a whole.
///
/// `lower` in the collation `C` lowers ASCII only, as the keys of addresses are made; the index has the default one.
const BEGIN: &str = "WITH wanted AS (
        SELECT server_id, message_id, due_at,
            needs_message OR coalesce((SELECT x.created_at FROM suppressions x WHERE x.server_id = row.server_id
                ORDER BY x.created_at DESC LIMIT 1) > row.due_at - 10000000, false) AS needs_message
        FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bool[])
            AS row (server_id, message_id, due_at, needs_message)),
    begun AS (
        UPDATE queue SET begun_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM wanted
        WHERE queue.server_id = wanted.server_id AND queue.message_id = wanted.message_id
          AND queue.message_id = ANY ($4::bigint[])
          AND queue.due_at = wanted.due_at AND claimed_node + 0 = $1 AND claimed_epoch = $2 AND begun_at IS NULL
          AND EXISTS (SELECT FROM nodes WHERE node = $1 AND epoch = $2)
        RETURNING queue.server_id, queue.message_id, queue.domain, queue.due_at, needs_message)
    SELECT begun.server_id, begun.message_id, begun.due_at,
           m.token, m.rcpt_to, m.status, m.hold_expiry, m.bounce_for_id, m.last_delivery_at,
           s.id, s.credential_id, s.message_id, s.mail_from, s.subject, s.tag, s.metadata, s.options, s.size,
           s.direction, s.bounce, s.received_with_ssl, s.test, s.created_at,
           x.address, x.reason, x.details, x.origin_message_id, x.created_at, x.expires_at, s.from_domain
    FROM begun
    LEFT JOIN messages m ON needs_message AND m.server_id = begun.server_id AND m.id = begun.message_id
    LEFT JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
    LEFT JOIN suppressions x ON x.server_id = m.server_id
        AND x.address = (lower(regexp_replace(m.rcpt_to, '@[^@]*$', '') COLLATE \"C\") || '@' || begun.domain)
            COLLATE \"default\"
        AND (x.expires_at IS NULL OR x.expires_at > $7)";

pub(super) async fn begin(
    client: &ClientWrapper,
    node: &Node,
    entries: &[Begin],
    now: Timestamp,
) -> Result<Vec<Begun>, StoreError> {
    let servers: Vec<i64> = entries.iter().map(|entry| entry.server_id.0).collect();
    let messages: Vec<i64> = entries.iter().map(|entry| entry.message_id.0).collect();
    let due: Vec<i64> = entries.iter().map(|entry| entry.due_at.as_micros()).collect();
    let needs: Vec<bool> = entries.iter().map(|entry| entry.needs_message).collect();
    let number = i64::from(node.number);
    let statement = client.prepare_cached(BEGIN).await?;
    let rows = client
        .query(&statement, &[&number, &node.epoch, &servers, &messages, &due, &needs, &now.as_micros()])
        .await?;
    let mut begun = HashMap::new();
    for row in &rows {
        let due_at = Timestamp::from_micros(row.get(2));
        begun.insert((ServerId(row.get(0)), MessageId(row.get(1)), due_at), read(row)?);
    }
    // The first of several for the same claim gets it.
    let answer = |entry: &Begin| {
        begun.remove(&(entry.server_id, entry.message_id, entry.due_at)).unwrap_or(Begun::Gone)
    };
    Ok(entries.iter().map(answer).collect())
}

fn read(row: &Row) -> Result<Begun, StoreError> {
    if row.get::<_, Option<&str>>(3).is_none() {
        return Ok(Begun::Go(None));
    }
    let message = Box::new(read_message(row)?);
    let Some(address) = row.get::<_, Option<String>>(23) else { return Ok(Begun::Go(Some(message))) };
    let suppression = Suppression {
        address,
        reason: name(row, 24, SuppressionReason::parse)?,
        details: row.get(25),
        origin_message_id: row.get::<_, Option<i64>>(26).map(MessageId),
        created_at: Timestamp::from_micros(row.get(27)),
        expires_at: row.get::<_, Option<i64>>(28).map(Timestamp::from_micros),
    };
    Ok(Begun::Suppressed(message, suppression))
}

fn read_message(row: &Row) -> Result<Message, StoreError> {
    let time = |at: usize| row.get::<_, Option<i64>>(at).map(Timestamp::from_micros);
    Ok(Message {
        id: MessageId(row.get(1)),
        token: MessageToken(row.get(3)),
        rcpt_to: row.get(4),
        status: name(row, 5, Status::parse)?,
        hold_expiry: time(6),
        bounce_for_id: row.get(7),
        last_delivery_at: time(8),
        next_attempt_at: time(2),
        send: Arc::new(SendInfo {
            server_id: ServerId(row.get(0)),
            id: SendId(row.get(9)),
            credential_id: row.get::<_, Option<i64>>(10).map(CredentialId),
            message_id: row.get(11),
            mail_from: row.get(12),
            from_domain: row.get(29),
            subject: row.get(13),
            tag: row.get(14),
            metadata: json(row, 15)?,
            options: json(row, 16)?,
            size: row.get::<_, i64>(17) as u64,
            direction: name(row, 18, Direction::parse)?,
            bounce: row.get::<_, i64>(19) != 0,
            received_with_ssl: row.get::<_, i64>(20) != 0,
            test: row.get::<_, i64>(21) != 0,
            created_at: Timestamp::from_micros(row.get(22)),
        }),
    })
}

fn name<T>(row: &Row, at: usize, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, StoreError> {
    let text: &str = row.get(at);
    parse(text).ok_or_else(|| StoreError::Internal(format!("column {at} holds the unknown name {text:?}")))
}

fn json<T: serde::de::DeserializeOwned>(row: &Row, at: usize) -> Result<T, StoreError> {
    serde_json::from_str(row.get(at)).map_err(|e| StoreError::Internal(format!("column {at}: {e}")))
}
