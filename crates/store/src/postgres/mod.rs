//! The engine for several nodes that share one PostgreSQL database. Accepts are gathered into batches; each batch is
//! one transaction, sent in one pipeline. Node numbers are leased.
//!
//! If the database is dead or unreachable, callers get "unavailable" after some seconds, broken connections
//! are discarded, and the pool reconnects by itself.

mod accept;
mod account_counts;
mod batcher;
mod begin;
mod claims;
mod columns;
mod connect;
mod delivery;
pub(crate) mod delivery_rows;
mod event_order;
pub(crate) mod event_rows;
mod finish;
pub(crate) mod generic_plans;
mod hold_causes;
mod lease;
mod migrate;
mod outbox;
mod partitions;
pub(crate) mod pipeline;
mod queue;
pub(crate) mod suppression_rows;
mod table;
mod tracking_events;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object, Pool};
use parking_lot::RwLock;
use postroad_model::{Clock, IdGenerator, MessageId, SendId, ServerId, idgen};

use crate::accept::hand_over::HandOver;
use crate::accept::{Accepted, NewSend};
use crate::error::{OpenError, StoreError};
use crate::retention::OldRows;
use crate::retention::old_rows::RemovalBound;
use crate::retention::removal::DroppedWeeks;
use crate::sql::Sql;
use crate::{Role, Settings, SqlOperation, SqlOperationWithIds};
use claims::Claims;
use connect::Canceller;
use pipeline::BusyConnection;

/// Timeout of an operation on the database; a healthy database is faster.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Slowest link to the database that timeouts allow for.
const LINK_BYTES_PER_SECOND_MIN: usize = 500_000;

/// State that the engine's handle and its batchers share.
#[derive(Debug)]
struct Database {
    pool: Pool,
    canceller: Canceller,
    partitions: partitions::Partitions,
    /// `None` for command-line tools, which create no ids.
    node: Option<RwLock<Node>>,
    claims: Claims,
    hand_over: Arc<HandOver>,
    /// Held while a batch of `accept_batch` is written, so that only one is written at a time.
    batch_lock: tokio::sync::Mutex<()>,
}

/// This process's leased node number.
#[derive(Debug, Clone)]
struct Node {
    number: u8,
    epoch: i64,
    /// Epoch since which this process and its predecessors on the same data folder have had the number without
    /// interruption.
    owner_since: i64,
    ids: Arc<IdGenerator>,
}

/// Kinds of batches. Each kind stores its created ids in its own row of `node_ids` (column `lane`), so that batches of
/// different kinds do not wait for each other.
#[derive(Debug, Clone, Copy)]
enum BatchKind {
    Accept = 0,
    AcceptWithKey = 1,
    /// Outcomes of attempts, and all other operations that create ids.
    Finish = 2,
}

#[derive(Debug)]
pub(crate) struct Engine {
    database: Arc<Database>,
    batcher: batcher::Batcher,
    /// For sends with an idempotency key. A separate batcher: if another node is using a key, sends without keys do not
    /// wait.
    keyed_batcher: batcher::Batcher,
    /// Renews the lease; `None` for command-line tools.
    heartbeat: Option<tokio::task::JoinHandle<()>>,
}

impl Engine {
    pub(crate) async fn open(
        url: &str,
        settings: &Settings,
        role: &Role,
        clock: Arc<dyn Clock>,
        hand_over: Arc<HandOver>,
    ) -> Result<Self, OpenError> {
        let (pool, canceller) =
            connect::open_pool(url, settings.postgres_connections, settings.postgres_ca_file.as_deref())?;
        let mut client = pool.get().await.map_err(StoreError::from)?;
        connect::check(&client).await?;
        migrate::migrate(&mut client, clock.now()).await?;
        let node = match role {
            Role::Tool => None,
            Role::Node { identity } => {
                let taken = with_timeout(lease::take(&mut client, identity, &clock, None)).await?;
                let node = taken.ok_or(OpenError::NoFreeNode)?;
                if let Err(error) = with_timeout(outbox::release_claims(&client, &node)).await {
                    tracing::warn!(%error, "webhook deliveries in progress are repeated after two minutes");
                }
                Some(RwLock::new(node))
            }
        };
        drop(client);
        let (partitions, claims) = (partitions::Partitions::default(), Claims::default());
        let database = Arc::new(Database {
            pool,
            canceller,
            partitions,
            node,
            claims,
            hand_over,
            batch_lock: tokio::sync::Mutex::default(),
        });
        let heartbeat = match role {
            Role::Tool => None,
            Role::Node { identity } => {
                Some(tokio::spawn(lease::keep_renewed(Arc::clone(&database), identity.clone(), clock)))
            }
        };
        Ok(Self {
            batcher: batcher::Batcher::start(Arc::clone(&database), BatchKind::Accept),
            keyed_batcher: batcher::Batcher::start(Arc::clone(&database), BatchKind::AcceptWithKey),
            database,
            heartbeat,
        })
    }

    pub(crate) fn ids(&self) -> Result<Arc<IdGenerator>, StoreError> {
        self.database.node().map(|node| node.ids)
    }

    pub(crate) fn node_number(&self) -> Result<i64, StoreError> {
        self.database.node().map(|node| node.number.into())
    }

    pub(crate) async fn release_webhook_claims(&self) -> Result<(), StoreError> {
        let node = self.database.node()?;
        self.autocommit(async |client| outbox::release_claims(client, &node).await).await
    }

    pub(crate) async fn write<T>(&self, operation: SqlOperation<T>) -> Result<T, StoreError> {
        self.database.transaction_of_size(0, operation).await
    }

    pub(crate) async fn read<T>(&self, operation: SqlOperation<T>) -> Result<T, StoreError> {
        self.read_of_size(0, operation).await
    }

    /// Reads a result of about this many bytes.
    async fn read_of_size<T>(&self, bytes: u64, operation: SqlOperation<T>) -> Result<T, StoreError> {
        let client = self.database.pool.get().await?;
        let result = with_timeout_for(bytes as usize, operation(&Sql::PostgresRead(&client))).await;
        self.database.discard_if_failed(client, &result);
        result
    }

    pub(crate) async fn accept(&self, send: NewSend) -> Result<Accepted, StoreError> {
        let batcher = if send.idempotency.is_some() { &self.keyed_batcher } else { &self.batcher };
        batcher.accept(send).await
    }

    pub(crate) async fn accept_batch(&self, sends: Vec<NewSend>) -> Result<Accepted, StoreError> {
        batcher::accept_batch(&self.database, sends).await
    }

    pub(crate) async fn body(
        &self,
        server_id: ServerId,
        send_id: SendId,
        size: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let operation: SqlOperation<_> = Box::new(move |sql| {
            Box::pin(async move {
                let rows = sql
                    .query_with_generic_plan(
                        "SELECT data FROM bodies WHERE server_id = $1 AND send_id = $2 ORDER BY piece",
                        &[server_id.0.into(), send_id.0.into()],
                    )
                    .await?;
                let mut whole: Option<Vec<u8>> = None;
                for mut row in rows {
                    let piece = row.take_blob(0)?;
                    match &mut whole {
                        None => whole = Some(piece),
                        Some(whole) => whole.extend_from_slice(&piece),
                    }
                }
                Ok(whole)
            })
        });
        self.read_of_size(size, operation).await
    }

    /// Like `write`, for operations that create ids: fenced by the lease, and the highest id is stored.
    pub(crate) async fn write_with_ids<T: Send + 'static>(
        &self,
        operation: SqlOperationWithIds<T>,
    ) -> Result<T, StoreError> {
        let node = self.database.node()?;
        let next_id = node.ids.next();
        self.database.partitions.ensure(&self.database.pool, next_id, next_id).await?;
        self.write(fence(node, operation)).await
    }

    /// Like `write_with_ids`, for operations that store a body and concern an older message; the ids were already
    /// created.
    pub(crate) async fn write_with_body<T: Send + 'static>(
        &self,
        older_message: MessageId,
        created_ids: &[i64],
        bytes: usize,
        operation: SqlOperationWithIds<T>,
    ) -> Result<T, StoreError> {
        let node = self.database.node()?;
        if created_ids.iter().any(|id| idgen::node_of(*id) != node.number) {
            return Err(lease::lost_error());
        }
        let next_id = node.ids.next();
        let oldest = created_ids.iter().copied().min().unwrap_or(next_id);
        self.database.partitions.ensure(&self.database.pool, oldest, next_id).await?;
        partitions::ensure_deliveries(&self.database.pool, older_message.0).await?;
        self.database.transaction_of_size(bytes, fence(node, operation)).await
    }

    /// Drops the weekly partitions of a table that end before this id, except those with rows that a server needs.
    pub(crate) async fn drop_weeks(
        &self,
        which: OldRows,
        before: i64,
        bounds: &[RemovalBound],
    ) -> Result<DroppedWeeks, StoreError> {
        partitions::drop_weeks_before(&self.database.pool, which, before, bounds).await
    }

    /// Runs single statements, each in its own transaction.
    async fn autocommit<T>(
        &self,
        work: impl AsyncFnOnce(&ClientWrapper) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let client = self.database.pool.get().await?;
        // Boxed: otherwise `work` would make the futures of all callers large.
        let result = with_timeout(Box::pin(work(&client))).await;
        self.database.discard_if_failed(client, &result);
        result
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.abort();
        }
    }
}

impl Database {
    fn node(&self) -> Result<Node, StoreError> {
        let node =
            self.node.as_ref().ok_or_else(|| StoreError::Internal("a tool has no node number".into()))?;
        Ok(node.read().clone())
    }

    /// Runs an operation in a transaction that sends about this many bytes.
    async fn transaction_of_size<T>(
        &self,
        bytes: usize,
        operation: SqlOperation<T>,
    ) -> Result<T, StoreError> {
        let mut client = self.pool.get().await?;
        let result = with_timeout_for(bytes, async {
            let transaction = client.transaction().await?;
            let value = operation(&Sql::Postgres(&transaction)).await?;
            transaction.commit().await?;
            Ok(value)
        })
        .await;
        self.discard_if_failed(client, &result);
        result
    }

    /// A connection for work that must not be left half done.
    async fn connection(&self) -> Result<BusyConnection, StoreError> {
        Ok(BusyConnection::new(self.pool.get().await?, self.canceller.clone()))
    }

    /// Discards a connection that failed with `Unavailable`, because it may be in an unknown state.
    fn discard_if_failed<T>(&self, client: Object, result: &Result<T, StoreError>) {
        if matches!(result, Err(StoreError::Unavailable(_))) {
            self.canceller.discard(client);
        }
    }
}

/// Extends an operation: it also stores the highest id created so far, and fails if the node has lost its lease.
fn fence<T: Send + 'static>(node: Node, operation: SqlOperationWithIds<T>) -> SqlOperation<T> {
    Box::new(move |sql| {
        Box::pin(async move {
            let result = operation(sql, Arc::clone(&node.ids)).await?;
            lease::store_last_id(sql, &node, BatchKind::Finish).await?;
            Ok(result)
        })
    })
}

async fn with_timeout<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    with_timeout_for(0, work).await
}

/// Runs `work` with a timeout that allows for sending this many bytes over a slow link.
async fn with_timeout_for<T>(
    bytes: usize,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let limit = OPERATION_TIMEOUT + Duration::from_secs((bytes / LINK_BYTES_PER_SECOND_MIN) as u64);
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Unavailable("the database does not answer".into())),
    }
}
