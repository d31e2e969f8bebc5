//! A batch of accepts as one transaction. Without idempotency keys everything, from BEGIN to COMMIT, is sent in one
//! flight; keys take a flight before it, to learn which of them are new.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::Object;
use futures_util::future::{BoxFuture, join_all};
use postroad_model::ServerId;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::columns::{Bodies, Columns, Deliveries, Events, Messages, Queue, Sends};
use super::{Database, Lane, Node, bounded_for, lease};
use crate::error::StoreError;
use crate::records::{Accepted, NewSend, StoredAnswer};

/// Notes the highest id; divides by zero, and so fails the transaction, when this node lost its lease. The last
/// statement, so that a connection which dies in the middle does not leave this row locked to the next batch.
const NOTE_IDS: &str = "WITH noted AS (UPDATE node_ids SET last_id = $4
                                       WHERE node = $1 AND lane = $2 AND epoch = $3 RETURNING 1)
                        SELECT 1 / count(*) FROM noted";

/// Sorted, so that two nodes with the same keys do not wait for each other in a circle. A key whose day is over is
/// free again.
const CLAIM_KEYS: &str =
    "INSERT INTO idempotency_keys AS known (server_id, key, fingerprint, answer, expires_at)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::text[], $5::bigint[])
        AS row (server_id, key, fingerprint, answer, expires_at) ORDER BY server_id, key
    ON CONFLICT (server_id, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at
        WHERE known.expires_at <= $6
    RETURNING server_id, key";

const FIND_KEYS: &str = "SELECT known.server_id, known.key, fingerprint, answer
    FROM unnest($1::bigint[], $2::text[]) AS wanted (server_id, key)
    JOIN idempotency_keys AS known ON known.server_id = wanted.server_id AND known.key = wanted.key";

/// Accepts all of `sends` or none. When it returns `Ok`, the transaction is committed.
pub(super) async fn accept(
    database: &Database,
    lane: Lane,
    sends: &[NewSend],
) -> Result<Vec<Accepted>, StoreError> {
    let node = database.node()?;
    let ids = || sends.iter().flat_map(|send| send.recipients.iter().map(|r| r.id.0).chain([send.info.id.0]));
    if ids().any(|id| lease::node_of(id) != node.number) {
        // They were handed out under a lease that is lost; another node may hand them out again.
        return Err(lease::lost());
    }
    let (oldest, newest) = (ids().min().unwrap_or(0), node.ids.last());
    database.partitions.ensure(&database.pool, oldest, newest).await?;
    let client = database.pool.get().await?;
    let bytes = sends.iter().map(NewSend::weight).sum();
    let result = bounded_for(bytes, in_transaction(&client, &node, lane, sends)).await;
    if result.is_err() {
        // Whatever state the connection is in, its transaction ends with it.
        drop(Object::take(client));
    }
    result
}

async fn in_transaction(
    client: &Object,
    node: &Node,
    lane: Lane,
    sends: &[NewSend],
) -> Result<Vec<Accepted>, StoreError> {
    let with_keys = sends.iter().any(|send| send.idempotency.is_some());
    let mut repeated = if with_keys {
        client.batch_execute("BEGIN").await?;
        repeated_keys(client, sends).await?
    } else {
        HashMap::new()
    };
    let accepted: Vec<Accepted> = sends
        .iter()
        .map(|send| {
            let key = send.idempotency.as_ref().map(|key| (send.info.server_id, key.key.as_str()));
            match key.and_then(|key| repeated.remove(&key)) {
                Some(answer) => Accepted::Repeated(answer),
                None => Accepted::Stored,
            }
        })
        .collect();
    let new = sends
        .iter()
        .zip(&accepted)
        .filter(|(_, accepted)| **accepted == Accepted::Stored)
        .map(|(send, _)| send);
    insert(client, node, lane, &Columns::of(new), !with_keys).await?;
    Ok(accepted)
}

/// Writes the batch's keys; returns the answers of those that had been used before.
async fn repeated_keys<'a>(
    client: &Object,
    sends: &'a [NewSend],
) -> Result<HashMap<(ServerId, &'a str), StoredAnswer>, StoreError> {
    let keyed = || sends.iter().filter_map(|send| Some((send, send.idempotency.as_ref()?)));
    let servers: Vec<i64> = keyed().map(|(send, _)| send.info.server_id.0).collect();
    let keys: Vec<&str> = keyed().map(|(_, key)| key.key.as_str()).collect();
    let fingerprints: Vec<&[u8]> = keyed().map(|(_, key)| &key.fingerprint[..]).collect();
    let answers: Vec<&str> = keyed().map(|(_, key)| key.answer.as_str()).collect();
    let expiries: Vec<i64> = keyed().map(|(_, key)| key.expires_at.as_micros()).collect();
    let now = keyed().map(|(send, _)| send.info.created_at.as_micros()).max().unwrap_or_default();
    let claim = client.prepare_cached(CLAIM_KEYS).await?;
    let params: [&(dyn ToSql + Sync); 6] = [&servers, &keys, &fingerprints, &answers, &expiries, &now];
    let rows = client.query(&claim, &params).await?;
    if rows.len() == keys.len() {
        return Ok(HashMap::new());
    }
    let claimed: HashSet<(i64, &str)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    // Read committed: this statement sees what the other transaction, which the insert waited for, committed.
    let find = client.prepare_cached(FIND_KEYS).await?;
    let mut stored = HashMap::new();
    for row in client.query(&find, &[&servers, &keys]).await? {
        let fingerprint: Vec<u8> = row.get(2);
        let fingerprint =
            fingerprint.try_into().map_err(|_| StoreError::Internal("a short fingerprint".into()))?;
        let answer = StoredAnswer { fingerprint, answer: row.get(3) };
        stored.insert((row.get::<_, i64>(0), row.get::<_, String>(1)), answer);
    }
    let mut repeated = HashMap::new();
    for (send, key) in keyed().filter(|(send, key)| !claimed.contains(&(send.info.server_id.0, &key.key))) {
        let found = stored.remove(&(send.info.server_id.0, key.key.clone()));
        // It was there a moment ago; whoever purged it has another idea of the time.
        let found = found.ok_or(StoreError::KeyInUse)?;
        repeated.insert((send.info.server_id, key.key.as_str()), found);
    }
    Ok(repeated)
}

/// Sends all inserts and the COMMIT in one flight. If one of them fails, PostgreSQL turns the COMMIT into a
/// ROLLBACK, and we see the error of the one that failed.
async fn insert(
    client: &Object,
    node: &Node,
    lane: Lane,
    columns: &Columns<'_>,
    begin: bool,
) -> Result<(), StoreError> {
    let (number, lane, last_id) = (i64::from(node.number), lane as i64, node.ids.last());
    let tables: [(&str, Vec<&(dyn ToSql + Sync)>, bool); 7] = [
        (Sends::SQL, columns.sends.params(), columns.sends.id.is_empty()),
        (Bodies::SQL, columns.bodies.params(), columns.bodies.send_id.is_empty()),
        (Messages::SQL, columns.messages.params(), columns.messages.id.is_empty()),
        (Queue::SQL, columns.queue.params(), columns.queue.message_id.is_empty()),
        (Events::SQL, columns.events.params(), columns.events.id.is_empty()),
        (Deliveries::SQL, columns.deliveries.params(), columns.deliveries.id.is_empty()),
        (NOTE_IDS, vec![&number, &lane, &node.epoch, &last_id], false),
    ];
    let mut statements = Vec::new();
    for (text, params, _) in tables.iter().filter(|(_, _, empty)| !empty) {
        statements.push((client.prepare_cached(text).await?, params));
    }
    let mut flight: Vec<BoxFuture<'_, Result<(), tokio_postgres::Error>>> = Vec::new();
    if begin {
        flight.push(Box::pin(client.batch_execute("BEGIN")));
    }
    for (statement, params) in &statements {
        flight.push(Box::pin(async move { client.execute(statement, params).await.map(drop) }));
    }
    flight.push(Box::pin(client.batch_execute("COMMIT")));
    // Polled in order, and so sent in order, without waiting for the answers in between.
    for outcome in join_all(flight).await {
        outcome.map_err(|error| match error.code() {
            Some(&SqlState::DIVISION_BY_ZERO) => lease::lost(),
            _ => StoreError::from(error).busy(),
        })?;
    }
    Ok(())
}
