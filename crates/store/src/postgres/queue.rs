//! Claims on PostgreSQL: marked in the row with node and epoch, skipped by other nodes. Each operation is one
//! or two statements, whatever the number of entries.
//!
//! `begun_at` is the time at which the claiming node began to send the message. 0 or less means that a dead node had
//! begun to send it, so the message may have arrived. Such an entry is not begun again before an outcome is recorded,
//! however many nodes die meanwhile. A negative value is the negated time at which a node adopted the entry; that
//! node's journal may know how the attempt ended.

use deadpool_postgres::ClientWrapper;
use postroad_model::{DomainName, MessageId, PoolId, ServerId, SourceId, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::claims::Key;
use super::{Node, lease};
use crate::error::StoreError;
use crate::queue::{ClaimSkips, ClaimedEntry};

/// Statement that claims the entries listed by `due`.
macro_rules! claim {
    ($due:literal) => {
        concat!(
            "WITH RECURSIVE ",
            $due,
            " UPDATE queue SET claimed_node = $1, claimed_epoch = $2, begun_at = NULL FROM due
              WHERE queue.server_id = due.server_id AND queue.message_id = due.message_id
              RETURNING queue.server_id, queue.message_id, domain, due_at, expires_at, attempts, pool_id, source_id"
        )
    };
}

/// Claims due entries, oldest first. A node that lost its lease claims nothing: another node would send the same
/// messages.
const CLAIM: &str = claim!(
    "due AS MATERIALIZED (
        SELECT server_id, message_id FROM queue
        WHERE claimed_node IS NULL AND scheduled = 0 AND due_at <= $3 AND domain <> ALL ($5::text[])
          AND EXISTS (SELECT FROM nodes WHERE node = $1 AND epoch = $2)
        ORDER BY due_at, message_id LIMIT $4 FOR UPDATE SKIP LOCKED)"
);

/// Claims due entries, except those of skipped servers, which may have millions. Reads the oldest entry of each other
/// server, and takes entries from the servers whose oldest entry is due first.
const CLAIM_EXCEPT_SKIPPED: &str = claim!(
    "senders (server_id) AS (
        SELECT (SELECT q.server_id FROM queue q WHERE q.claimed_node IS NULL AND q.scheduled = 0
                ORDER BY q.server_id LIMIT 1)
        UNION ALL
        SELECT (SELECT q.server_id FROM queue q WHERE q.claimed_node IS NULL AND q.scheduled = 0
                  AND q.server_id > senders.server_id ORDER BY q.server_id LIMIT 1)
        FROM senders WHERE senders.server_id IS NOT NULL),
    heads AS MATERIALIZED (
        SELECT senders.server_id FROM senders
        CROSS JOIN LATERAL (SELECT q.due_at FROM queue q WHERE q.server_id = senders.server_id
            AND q.claimed_node IS NULL AND q.scheduled = 0 AND q.due_at <= $3
            ORDER BY q.due_at, q.message_id LIMIT 1) AS oldest
        WHERE senders.server_id <> ALL ($6::bigint[]) ORDER BY oldest.due_at, senders.server_id LIMIT $4),
    due AS MATERIALIZED (
        SELECT taken.server_id, taken.message_id FROM heads
        CROSS JOIN LATERAL (SELECT q.server_id, q.message_id FROM queue q WHERE q.server_id = heads.server_id
            AND q.claimed_node IS NULL AND q.scheduled = 0 AND q.due_at <= $3 AND q.domain <> ALL ($5::text[])
            ORDER BY q.due_at, q.message_id LIMIT $4 FOR UPDATE SKIP LOCKED) AS taken
        WHERE EXISTS (SELECT FROM nodes WHERE node = $1 AND epoch = $2) LIMIT $4)"
);

/// Claims those of the listed entries that are free, or whose claim belongs to an expired lease. Messages begun under
/// such a claim may have been sent: their `begun_at` becomes negative.
const ADOPT: &str = "WITH wanted AS MATERIALIZED (
        SELECT queue.server_id, queue.message_id
        FROM queue JOIN unnest($3::bigint[], $4::bigint[]) AS row (server_id, message_id)
            ON queue.server_id = row.server_id AND queue.message_id = row.message_id
        WHERE EXISTS (SELECT FROM nodes WHERE node = $1 AND epoch = $2)
          AND NOT EXISTS (SELECT FROM nodes WHERE node = claimed_node AND epoch = claimed_epoch
                          AND lease_until >= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
        ORDER BY queue.server_id, queue.message_id FOR UPDATE OF queue)
    UPDATE queue SET claimed_node = $1, claimed_epoch = $2, begun_at = CASE WHEN begun_at IS NOT NULL
        THEN -(extract(epoch FROM clock_timestamp()) * 1000000)::bigint END
    FROM wanted
    WHERE queue.server_id = wanted.server_id AND queue.message_id = wanted.message_id
    RETURNING queue.server_id, queue.message_id, domain, due_at, expires_at, attempts, pool_id,
        source_id";

/// Releases claims of this node on the listed entries. Entries of messages that a dead node had begun stay claimed,
/// with an expired epoch, so that `ADOPT_ABANDONED` finds them.
const RELEASE: &str = "UPDATE queue SET claimed_node = CASE WHEN begun_at <= 0 THEN claimed_node END,
        claimed_epoch = CASE WHEN begun_at <= 0 THEN 0 END, begun_at = CASE WHEN begun_at <= 0 THEN begun_at END
    FROM unnest($3::bigint[], $4::bigint[]) AS row (server_id, message_id)
    WHERE queue.server_id = row.server_id AND queue.message_id = row.message_id
      AND queue.message_id = ANY ($4::bigint[])
      AND coalesce(claimed_node, -1) = $1 AND claimed_epoch + 0 = $2";

const UNBEGIN: &str = "UPDATE queue SET begun_at = NULL
    FROM unnest($3::bigint[], $4::bigint[]) AS row (server_id, message_id)
    WHERE queue.server_id = row.server_id AND queue.message_id = row.message_id
      AND queue.message_id = ANY ($4::bigint[]) AND begun_at > 0
      AND coalesce(claimed_node, -1) = $1 AND claimed_epoch + 0 = $2";

/// Like `RELEASE`, for all claims of this node except those on the listed entries.
const RELEASE_ALL_BUT: &str = "UPDATE queue SET claimed_node = CASE WHEN begun_at <= 0 THEN claimed_node END,
        claimed_epoch = CASE WHEN begun_at <= 0 THEN 0 END, begun_at = CASE WHEN begun_at <= 0 THEN begun_at END
    WHERE claimed_node = $1 AND claimed_epoch = $2
      AND (server_id, message_id) NOT IN (SELECT * FROM unnest($3::bigint[], $4::bigint[]))";

/// Releases claims of dead nodes, except on messages that a dead node had begun, which may have been sent
/// (`ADOPT_ABANDONED`). Epochs only grow, so the index leads directly to claims of earlier epochs.
const REAP: &str = "WITH over AS MATERIALIZED (
        SELECT gone.server_id, gone.message_id FROM nodes CROSS JOIN LATERAL (
            SELECT server_id, message_id FROM queue
            WHERE claimed_node = nodes.node AND claimed_epoch < nodes.epoch + CASE WHEN nodes.lease_until
                    < (extract(epoch FROM statement_timestamp()) * 1000000)::bigint THEN 1 ELSE 0 END
              AND begun_at IS NULL
            LIMIT $1 FOR UPDATE SKIP LOCKED) AS gone
        LIMIT $1)
    UPDATE queue SET claimed_node = NULL, claimed_epoch = NULL, begun_at = NULL FROM over
    WHERE queue.server_id = over.server_id AND queue.message_id = over.message_id";

/// Claims messages that dead nodes had begun. A dead node gets a quarter of an hour to return and read its journal,
/// even if it had returned before. A time in the future was stored before the database's clock went back, and counts as
/// old. `begun_at` becomes 0: if this node dies before it records the outcome, another node claims the message in the
/// same way.
const ADOPT_ABANDONED: &str = "WITH over AS MATERIALIZED (
        SELECT gone.server_id, gone.message_id FROM nodes CROSS JOIN LATERAL (
            SELECT server_id, message_id FROM queue
            WHERE claimed_node = nodes.node AND claimed_epoch < nodes.epoch + CASE WHEN nodes.lease_until
                    < (extract(epoch FROM statement_timestamp()) * 1000000)::bigint THEN 1 ELSE 0 END
              AND (abs(begun_at) < (extract(epoch FROM statement_timestamp()) * 1000000)::bigint - 900000000
                   OR abs(begun_at) > (extract(epoch FROM statement_timestamp()) * 1000000)::bigint + 60000000)
            LIMIT $3 FOR UPDATE SKIP LOCKED) AS gone
        WHERE EXISTS (SELECT FROM nodes WHERE node = $1 AND epoch = $2)
        LIMIT $3)
    UPDATE queue SET claimed_node = $1, claimed_epoch = $2, begun_at = 0 FROM over
    WHERE queue.server_id = over.server_id AND queue.message_id = over.message_id
    RETURNING queue.server_id, queue.message_id, domain, due_at, expires_at, attempts, pool_id,
        source_id";

/// Releases messages that the previous process of this node had begun itself, and that this process has not adopted.
const RELEASE_PREVIOUS: &str = "UPDATE queue SET claimed_node = NULL, claimed_epoch = NULL, begun_at = NULL
    WHERE claimed_node = $1 AND claimed_epoch >= $3 AND claimed_epoch < $2 AND begun_at > 0";

pub(super) async fn claim(
    client: &ClientWrapper,
    node: &Node,
    due_by: Timestamp,
    limit: usize,
    skip: &ClaimSkips,
) -> Result<Vec<ClaimedEntry>, StoreError> {
    let skip_domains: Vec<&str> = skip.domains.iter().map(DomainName::as_str).collect();
    let skip_servers: Vec<i64> = skip.servers.iter().map(|server| server.0).collect();
    let (number, limit) = (i64::from(node.number), limit as i64);
    let due_by = due_by.as_micros();
    let params: [&(dyn ToSql + Sync); 6] =
        [&number, &node.epoch, &due_by, &limit, &skip_domains, &skip_servers];
    let rows = if skip_servers.is_empty() {
        client.query(&client.prepare_cached(CLAIM).await?, &params[..5]).await?
    } else {
        client.query(&client.prepare_cached(CLAIM_EXCEPT_SKIPPED).await?, &params).await?
    };
    read_claimed(&rows)
}

pub(super) async fn adopt(
    client: &ClientWrapper,
    node: &Node,
    keys: &[Key],
) -> Result<Vec<ClaimedEntry>, StoreError> {
    let (servers, messages) = key_columns(keys);
    let statement = client.prepare_cached(ADOPT).await?;
    let rows = client.query(&statement, &[&i64::from(node.number), &node.epoch, &servers, &messages]).await?;
    read_claimed(&rows)
}

pub(super) async fn adopt_abandoned(
    client: &ClientWrapper,
    node: &Node,
    limit: usize,
) -> Result<Vec<ClaimedEntry>, StoreError> {
    let statement = client.prepare_cached(ADOPT_ABANDONED).await?;
    let rows = client.query(&statement, &[&i64::from(node.number), &node.epoch, &(limit as i64)]).await?;
    read_claimed(&rows)
}

fn read_claimed(rows: &[Row]) -> Result<Vec<ClaimedEntry>, StoreError> {
    let mut claimed = rows
        .iter()
        .map(|row| {
            let domain: &str = row.get(2);
            Ok(ClaimedEntry {
                server_id: ServerId(row.get(0)),
                message_id: MessageId(row.get(1)),
                domain: DomainName::parse(domain).map_err(|e| {
                    StoreError::Internal(format!("a queue entry has the domain {domain:?}: {e}"))
                })?,
                due_at: Timestamp::from_micros(row.get(3)),
                expires_at: row.get::<_, Option<i64>>(4).map(Timestamp::from_micros),
                attempts: row.get::<_, i64>(5) as u32,
                pool_id: row.get::<_, Option<i64>>(6).map(PoolId),
                source_id: row.get::<_, Option<i64>>(7).map(SourceId),
            })
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    // RETURNING does not preserve order.
    claimed.sort_by_key(|entry| (entry.due_at, entry.message_id));
    Ok(claimed)
}

pub(super) async fn release(client: &ClientWrapper, node: &Node, keys: &[Key]) -> Result<(), StoreError> {
    execute_with_keys(client, RELEASE, node, keys).await
}

/// Unmarks a claimed message: it is not being sent.
pub(super) async fn unbegin(client: &ClientWrapper, node: &Node, key: Key) -> Result<(), StoreError> {
    execute_with_keys(client, UNBEGIN, node, &[key]).await
}

/// Releases all claims of this node except the known ones.
pub(super) async fn release_all_but(
    client: &ClientWrapper,
    node: &Node,
    known: &[Key],
) -> Result<(), StoreError> {
    execute_with_keys(client, RELEASE_ALL_BUT, node, known).await
}

async fn execute_with_keys(
    client: &ClientWrapper,
    text: &'static str,
    node: &Node,
    keys: &[Key],
) -> Result<(), StoreError> {
    let (servers, messages) = key_columns(keys);
    let statement = client.prepare_cached(text).await?;
    client.execute(&statement, &[&i64::from(node.number), &node.epoch, &servers, &messages]).await?;
    Ok(())
}

pub(super) fn key_columns(keys: &[Key]) -> (Vec<i64>, Vec<i64>) {
    keys.iter().map(|(server_id, message_id)| (server_id.0, message_id.0)).unzip()
}

pub(super) async fn reap(client: &ClientWrapper, limit: usize) -> Result<u64, StoreError> {
    lease::shorten_too_long(&**client).await?;
    let statement = client.prepare_cached(REAP).await?;
    Ok(client.execute(&statement, &[&(limit as i64)]).await?)
}

/// Releases messages that the previous process on this node's data folder had begun; returns how many.
pub(super) async fn release_previous_claims(client: &ClientWrapper, node: &Node) -> Result<u64, StoreError> {
    let statement = client.prepare_cached(RELEASE_PREVIOUS).await?;
    Ok(client.execute(&statement, &[&i64::from(node.number), &node.epoch, &node.owner_since]).await?)
}
