//! Leases of node numbers: for 30 s, renewed every 5 s, by the database's clock. A process that restarts on the same
//! data folder takes its old number back at once (the folder is locked, so the old process is dead). Otherwise a number
//! is free when its lease has expired. Every new lease increments the epoch, which fences the old holder.
//!
//! A lease that ends more than 30 s from now was taken before the database's clock went back. Its node may still be
//! alive, so the lease is shortened to 30 s: if the node is dead, its claims are then released in time; if it is alive,
//! its claims stay.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Object;
use postroad_model::{Clock, IdGenerator};
use tokio_postgres::GenericClient;

use super::{BatchKind, Database, Node, with_timeout};
use crate::error::{OpenError, StoreError};
use crate::sql::Sql;

/// Stores the highest id of one `BatchKind` (column `lane`). If this node lost its lease, the statement divides by zero,
/// so that the transaction fails. It is the last statement, so that a connection that dies earlier does not leave this
/// row locked for the next batch.
pub(super) const STORE_LAST_ID: &str = "WITH noted AS (UPDATE node_ids SET last_id = greatest(last_id, $4)
                                       WHERE node = $1 AND lane = $2 AND epoch = $3 RETURNING 1)
                        SELECT 1 / count(*) FROM noted";

const RENEW_EVERY: Duration = Duration::from_secs(5);

const SHORTEN_TOO_LONG: &str =
    "UPDATE nodes SET lease_until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 30000000
    WHERE lease_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 30000000";

/// Shortens leases that are too long because the clock was ahead. Must be called before any decision that depends on
/// the end of a lease.
pub(super) async fn shorten_too_long(client: &impl GenericClient) -> Result<(), StoreError> {
    let shortened = client.execute(SHORTEN_TOO_LONG, &[]).await?;
    if shortened > 0 {
        tracing::warn!(nodes = shortened, "database clock went back; leases of nodes shortened");
    }
    Ok(())
}

/// Takes a lease; `None` if all numbers are taken. `previous` is the lease that this process has lost, if any.
pub(super) async fn take(
    client: &mut Object,
    identity: &str,
    clock: &Arc<dyn Clock>,
    previous: Option<&Node>,
) -> Result<Option<Node>, StoreError> {
    let transaction = client.transaction().await?;
    shorten_too_long(&*transaction).await?;
    let taken = transaction
        .query_opt(
            "UPDATE nodes SET owner = $1, epoch = epoch + 1,
                    owner_since = CASE WHEN owner = $1 THEN owner_since ELSE epoch + 1 END,
                    lease_until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 30000000
             WHERE node = (SELECT node FROM nodes
                           WHERE owner = $1 OR lease_until < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
                           ORDER BY (owner = $1) DESC, node LIMIT 1 FOR UPDATE SKIP LOCKED)
             RETURNING node, epoch, owner_since",
            &[&identity],
        )
        .await?;
    let Some(row) = taken else { return Ok(None) };
    let (number, epoch, owner_since): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    let stored_ids = transaction
        .query("UPDATE node_ids SET epoch = $2 WHERE node = $1 RETURNING last_id", &[&number, &epoch])
        .await?;
    transaction.commit().await?;
    let number = number as u8;
    // Ids that this process created but has not stored yet may still arrive: continue above them.
    let created_id =
        previous.filter(|previous| previous.number == number).map(|previous| previous.ids.last());
    let last_id = stored_ids.iter().map(|row| row.get::<_, i64>(0)).chain(created_id).max().unwrap_or(0);
    tracing::info!(node = number, epoch, "node number leased");
    let ids = Arc::new(IdGenerator::new(Arc::clone(clock), number, last_id));
    Ok(Some(Node { number, epoch, owner_since, ids }))
}

/// Renews the lease as long as the process runs, and takes a new one if it was lost.
pub(super) async fn keep_renewed(database: Arc<Database>, identity: String, clock: Arc<dyn Clock>) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        if let Err(error) = with_timeout(renew(&database, &identity, &clock)).await {
            tracing::warn!(%error, "renewing the node's lease failed; retrying");
        }
    }
}

async fn renew(database: &Database, identity: &str, clock: &Arc<dyn Clock>) -> Result<(), StoreError> {
    let node = database.node()?;
    let mut client = database.pool.get().await?;
    let renewed = client
        .execute(
            "UPDATE nodes SET lease_until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 30000000
             WHERE node = $1 AND epoch = $2",
            &[&i64::from(node.number), &node.epoch],
        )
        .await?;
    if renewed == 0 {
        tracing::warn!(node = node.number, "node lease lost; leasing another number");
        let new = take(&mut client, identity, clock, Some(&node))
            .await?
            .ok_or_else(|| StoreError::Unavailable(OpenError::NoFreeNode.to_string()))?;
        let slot = database.node.as_ref().expect("only nodes keep a lease");
        *slot.write() = new;
    }
    Ok(())
}

/// Stores the highest id inside an operation; fails if this node lost its lease.
pub(super) async fn store_last_id(sql: &Sql<'_>, node: &Node, kind: BatchKind) -> Result<(), StoreError> {
    let updated = sql
        .execute(
            "UPDATE node_ids SET last_id = greatest(last_id, $4) WHERE node = $1 AND lane = $2 AND epoch = $3",
            &[i64::from(node.number).into(), (kind as i64).into(), node.epoch.into(), node.ids.last().into()],
        )
        .await?;
    if updated == 0 {
        return Err(lost_error());
    }
    Ok(())
}

pub(super) fn lost_error() -> StoreError {
    StoreError::Unavailable("this node lost its lease; it takes a new one within seconds".into())
}
