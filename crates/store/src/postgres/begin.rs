//! `begin` on PostgreSQL: one statement marks the entries, another reads the messages of entries that need it.

use std::collections::HashMap;
use std::sync::Arc;

use deadpool_postgres::ClientWrapper;
use postroad_model::{
    CredentialId, Direction, MessageId, MessageToken, SendId, ServerId, Status, SuppressionReason, Timestamp,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::Node;
use super::generic_plans;
use crate::accept::{SendInfo, SendOptions};
use crate::error::StoreError;
use crate::messages::Message;
use crate::queue::{BeginRequest, BeginResult};
use crate::sql::damaged_json;
use crate::suppressions::Suppression;

/// Marks the entries. Returns for each entry whether any address was suppressed for the entry's server since the entry
/// was due, allowing ten seconds for the clocks of other nodes. Reads only the newest suppression: in a search by a
/// time that the planner does not know, PostgreSQL would read the whole table.
///
/// Rows are found one by one and then updated by their position (ctid), so that the plan can be kept (`generic_plans`).
/// `coalesce` and `+ 0` keep the planner from using the index of claims, which PostgreSQL would read as a whole: a
/// comparison with `claimed_node` alone would imply the condition of that index.
const MARK: &str =
    "UPDATE queue SET begun_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    WHERE ctid = ANY (ARRAY(
        SELECT place FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) AS row (server_id, message_id, due_at)
        CROSS JOIN LATERAL (SELECT q.ctid AS place FROM queue q
            WHERE q.server_id = row.server_id AND q.message_id = row.message_id AND q.due_at = row.due_at
            LIMIT 1) AS found))
      AND due_at = ANY ($5::bigint[])
      AND coalesce(claimed_node, -1) = $1 AND claimed_epoch + 0 = $2 AND begun_at IS NULL
      AND EXISTS (SELECT FROM nodes WHERE node = $1 AND epoch = $2)
    RETURNING server_id, message_id, due_at,
        coalesce((SELECT x.created_at FROM suppressions x WHERE x.server_id = queue.server_id
            ORDER BY x.created_at DESC LIMIT 1) > due_at - 10000000, false)";

/// `lower` in the collation `C` lowers only ASCII, as in the keys of addresses; the index has the default collation.
/// The hash is that of `suppressions::record::erased_key`: the suppression of an erased address has only the hash.
const READ: &str = "SELECT row.server_id, row.message_id, row.due_at,
           m.token, m.rcpt_to, m.status, m.hold_expiry, m.bounce_for_id, m.last_delivery_at,
           s.id, s.credential_id, s.message_id, s.mail_from, s.subject, s.tag, s.metadata, s.options, s.size,
           s.direction, s.bounce, s.received_with_ssl, s.test, s.created_at,
           x.address, x.reason, x.details, x.origin_message_id, x.created_at, x.expires_at, s.from_domain,
           m.send_at, q.released_at
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS row (server_id, message_id, due_at)
    CROSS JOIN LATERAL (SELECT q.domain, q.released_at FROM queue q
        WHERE q.server_id = row.server_id AND q.message_id = row.message_id LIMIT 1) AS q
    CROSS JOIN LATERAL (SELECT * FROM messages m
        WHERE m.server_id = row.server_id AND m.id = row.message_id LIMIT 1) AS m
    CROSS JOIN LATERAL (SELECT * FROM sends s
        WHERE s.server_id = row.server_id AND s.id = m.send_id LIMIT 1) AS s
    CROSS JOIN LATERAL (SELECT lower(regexp_replace(m.rcpt_to, '@[^@]*$', '') COLLATE \"C\") || '@' || q.domain
        AS address) AS key
    LEFT JOIN LATERAL (SELECT * FROM suppressions x WHERE x.server_id = row.server_id
        AND x.address = ANY (ARRAY[key.address COLLATE \"default\", ('erased:' || rtrim(translate(encode(sha256(
            convert_to('postroad suppression ' || row.server_id || ' ' || key.address, 'UTF8')), 'base64'),
            '+/', '-_'), '=')) COLLATE \"default\"])
        AND (x.expires_at IS NULL OR x.expires_at > $4) LIMIT 1) AS x ON true";

type EntryKey = (ServerId, MessageId, Timestamp);

/// Marks first, then reads: nobody changes a message that is begun.
pub(super) async fn begin(
    client: &ClientWrapper,
    node: &Node,
    entries: &[BeginRequest],
    now: Timestamp,
) -> Result<Vec<BeginResult>, StoreError> {
    let mut marked = mark(client, node, entries).await?;
    let is_read = |entry: &&BeginRequest| {
        marked.get(&key(entry)).is_some_and(|has_new_suppression| *has_new_suppression || entry.needs_message)
    };
    let to_read: Vec<&BeginRequest> = entries.iter().filter(is_read).collect();
    let mut messages = if to_read.is_empty() { HashMap::new() } else { read(client, &to_read, now).await? };
    // If several entries name the same claim, the first one gets it.
    let answer = |entry: &BeginRequest| {
        let entry_key = key(entry);
        match marked.remove(&entry_key) {
            Some(_) => messages.remove(&entry_key).unwrap_or(BeginResult::Go(None)),
            None => BeginResult::Gone,
        }
    };
    Ok(entries.iter().map(answer).collect())
}

fn key(entry: &BeginRequest) -> EntryKey {
    (entry.server_id, entry.message_id, entry.due_at)
}

/// Entries that may be sent, and for each whether any address was suppressed for its server since it was due.
async fn mark(
    client: &ClientWrapper,
    node: &Node,
    entries: &[BeginRequest],
) -> Result<HashMap<EntryKey, bool>, StoreError> {
    let (servers, messages, due) = columns(entries);
    let number = i64::from(node.number);
    let params: [&(dyn ToSql + Sync); 5] = [&number, &node.epoch, &servers, &messages, &due];
    let rows = generic_plans::query(client, MARK, &params).await?;
    let mark = |row: &Row| {
        let due_at = Timestamp::from_micros(row.get(2));
        ((ServerId(row.get(0)), MessageId(row.get(1)), due_at), row.get(3))
    };
    Ok(rows.iter().map(mark).collect())
}

async fn read(
    client: &ClientWrapper,
    entries: &[&BeginRequest],
    now: Timestamp,
) -> Result<HashMap<EntryKey, BeginResult>, StoreError> {
    let (servers, messages, due) = columns(entries.iter().copied());
    let params: [&(dyn ToSql + Sync); 4] = [&servers, &messages, &due, &now.as_micros()];
    let rows = generic_plans::query(client, READ, &params).await?;
    let read = |row: &Row| {
        let due_at = Timestamp::from_micros(row.get(2));
        Ok(((ServerId(row.get(0)), MessageId(row.get(1)), due_at), read_begun(row)?))
    };
    rows.iter().map(read).collect()
}

fn columns<'a>(entries: impl IntoIterator<Item = &'a BeginRequest>) -> (Vec<i64>, Vec<i64>, Vec<i64>) {
    let column = |entry: &BeginRequest| (entry.server_id.0, entry.message_id.0, entry.due_at.as_micros());
    entries.into_iter().map(column).collect()
}

fn read_begun(row: &Row) -> Result<BeginResult, StoreError> {
    let message = Box::new(read_message(row)?);
    let Some(address) = row.get::<_, Option<String>>(23) else { return Ok(BeginResult::Go(Some(message))) };
    let suppression = Suppression {
        address,
        reason: parsed(row, 24, SuppressionReason::parse)?,
        details: row.get(25),
        origin_message_id: row.get::<_, Option<i64>>(26).map(MessageId),
        created_at: Timestamp::from_micros(row.get(27)),
        expires_at: row.get::<_, Option<i64>>(28).map(Timestamp::from_micros),
    };
    Ok(BeginResult::Suppressed(message, suppression))
}

fn read_message(row: &Row) -> Result<Message, StoreError> {
    let time = |at: usize| row.get::<_, Option<i64>>(at).map(Timestamp::from_micros);
    let options: SendOptions = json(row, 16)?;
    Ok(Message {
        id: MessageId(row.get(1)),
        token: MessageToken(row.get(3)),
        rcpt_to: row.get(4),
        status: parsed(row, 5, Status::parse)?,
        hold_expiry: time(6),
        bounce_for_id: row.get(7),
        last_delivery_at: time(8),
        next_attempt_at: time(2),
        send_at: time(30).or(options.send_at),
        released_at: time(31),
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
            options,
            size: row.get::<_, i64>(17) as u64,
            direction: parsed(row, 18, Direction::parse)?,
            bounce: row.get::<_, i64>(19) != 0,
            received_with_ssl: row.get::<_, i64>(20) != 0,
            test: row.get::<_, i64>(21) != 0,
            created_at: Timestamp::from_micros(row.get(22)),
        }),
    })
}

fn parsed<T>(row: &Row, at: usize, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, StoreError> {
    let text: &str = row.get(at);
    parse(text).ok_or_else(|| StoreError::Internal(format!("column {at} holds the unknown name {text:?}")))
}

fn json<T: serde::de::DeserializeOwned>(row: &Row, at: usize) -> Result<T, StoreError> {
    serde_json::from_str(row.get(at)).map_err(|e| damaged_json(at, &e))
}
