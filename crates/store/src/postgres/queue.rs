//! Claims on PostgreSQL: marked in the row with node and epoch, skipped by the other nodes.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use postroad_model::{DomainName, MessageId, ServerId, Timestamp};

use super::Node;
use crate::error::StoreError;
use crate::records::Claimed;
use crate::sql::Sql;

/// What this node has claimed, as far as it knows: a claim that was committed while its answer was lost (the caller
/// hung up, or the connection died) is nobody's, and goes back before the next one.
#[derive(Debug, Default)]
pub(super) struct Claims {
    held: Mutex<HashSet<Key>>,
    /// One claim at a time; true while its end is unknown.
    claiming: tokio::sync::Mutex<bool>,
}

type Key = (ServerId, MessageId);

pub(super) struct Turn<'a> {
    held: &'a Mutex<HashSet<Key>>,
    some_are_lost: tokio::sync::MutexGuard<'a, bool>,
}

impl Claims {
    pub(super) async fn begin(&self) -> Turn<'_> {
        Turn { held: &self.held, some_are_lost: self.claiming.lock().await }
    }

    pub(super) fn forget(&self, keys: &[Key]) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            held.remove(key);
        }
    }
}

impl Turn<'_> {
    /// What to keep when the others are given back; `None` if all is known. From here to `end` nothing is.
    pub(super) fn held_if_some_are_lost(&mut self) -> Option<Vec<Key>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *self.some_are_lost, true).then(|| held.iter().copied().collect())
    }

    pub(super) fn end(mut self, claimed: &[Claimed]) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.extend(claimed.iter().map(|entry| (entry.server_id, entry.message_id)));
        *self.some_are_lost = false;
    }
}

/// The claim fails silently for a node that lost its lease: what it would send, another node sends too.
pub(super) async fn claim(
    sql: &Sql<'_>,
    node: &Node,
    due_by: Timestamp,
    limit: usize,
) -> Result<Vec<Claimed>, StoreError> {
    let rows = sql
        .query(
            "WITH due AS MATERIALIZED (
                 SELECT server_id, message_id FROM queue
                 WHERE claimed_node IS NULL AND due_at <= $3
                   AND EXISTS (SELECT FROM nodes WHERE node = $1 AND epoch = $2)
                 ORDER BY due_at, message_id LIMIT $4 FOR UPDATE SKIP LOCKED)
             UPDATE queue SET claimed_node = $1, claimed_epoch = $2 FROM due
             WHERE queue.server_id = due.server_id AND queue.message_id = due.message_id
             RETURNING queue.server_id, queue.message_id, domain, due_at, expires_at, attempts",
            &[i64::from(node.number).into(), node.epoch.into(), due_by.into(), (limit as i64).into()],
        )
        .await?;
    let mut claimed: Vec<Claimed> = rows
        .iter()
        .map(|row| {
            let domain = row.text(2)?;
            Ok(Claimed {
                server_id: ServerId(row.int(0)?),
                message_id: MessageId(row.int(1)?),
                domain: DomainName::parse(&domain)
                    .map_err(|e| StoreError::Internal(format!("{domain:?}: {e}")))?,
                due_at: row.time(3)?,
                expires_at: row.time_opt(4)?,
                attempts: row.int(5)? as u32,
            })
        })
        .collect::<Result<_, StoreError>>()?;
    // RETURNING keeps no order.
    claimed.sort_by_key(|entry| (entry.due_at, entry.message_id));
    Ok(claimed)
}

pub(super) async fn is_claimed_by(
    sql: &Sql<'_>,
    node: &Node,
    (server_id, message_id): Key,
) -> Result<bool, StoreError> {
    let row = sql
        .query_opt(
            "SELECT message_id FROM queue
             WHERE server_id = $1 AND message_id = $2 AND claimed_node = $3 AND claimed_epoch = $4 FOR UPDATE",
            &[server_id.0.into(), message_id.0.into(), i64::from(node.number).into(), node.epoch.into()],
        )
        .await?;
    Ok(row.is_some())
}

/// Gives up this node's claims; a message of which the claim is not ours is left alone.
pub(super) async fn release(sql: &Sql<'_>, node: &Node, keys: &[Key]) -> Result<(), StoreError> {
    for (server_id, message_id) in keys {
        sql.execute(
            "UPDATE queue SET claimed_node = NULL, claimed_epoch = NULL
             WHERE server_id = $1 AND message_id = $2 AND claimed_node = $3 AND claimed_epoch = $4",
            &[server_id.0.into(), message_id.0.into(), i64::from(node.number).into(), node.epoch.into()],
        )
        .await?;
    }
    Ok(())
}

/// Gives up this node's claims that it does not know of.
pub(super) async fn release_all_but(sql: &Sql<'_>, node: &Node, held: &[Key]) -> Result<(), StoreError> {
    let Sql::Postgres(transaction) = sql else {
        return Err(StoreError::Internal("claims of a node are on PostgreSQL".into()));
    };
    let servers: Vec<i64> = held.iter().map(|(server_id, _)| server_id.0).collect();
    let messages: Vec<i64> = held.iter().map(|(_, message_id)| message_id.0).collect();
    transaction
        .execute(
            "UPDATE queue SET claimed_node = NULL, claimed_epoch = NULL
             WHERE claimed_node = $1 AND claimed_epoch = $2
               AND (server_id, message_id) NOT IN (SELECT * FROM unnest($3::bigint[], $4::bigint[]))",
            &[&i64::from(node.number), &node.epoch, &servers, &messages],
        )
        .await?;
    Ok(())
}

pub(super) async fn reap(sql: &Sql<'_>) -> Result<u64, StoreError> {
    sql.execute(
        "UPDATE queue SET claimed_node = NULL, claimed_epoch = NULL FROM nodes
         WHERE queue.claimed_node = nodes.node
           AND (queue.claimed_epoch <> nodes.epoch
                OR nodes.lease_until < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)",
        &[],
    )
    .await
}
