//! The shared engine: any number of nodes on one PostgreSQL. Accepts are gathered into batches, each one
//! transaction sent in one flight; node numbers are leased.
//!
//! On failure (dead or unreachable database) callers are answered "unavailable" after at most a few seconds, broken
//! connections are thrown away, and the pool connects anew by itself.

mod accept;
mod batcher;
mod begin;
mod claims;
mod columns;
mod connect;
mod finish;
mod flight;
mod lease;
mod migrate;
mod objections;
mod partitions;
mod queue;

use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object, Pool};
use postroad_model::{Clock, DomainName, IdGenerator, SendId, ServerId, Timestamp};

use crate::error::{OpenError, StoreError};
use crate::hand_over::HandOver;
use crate::records::{Accepted, Begin, Begun, Claimed, NewSend, Outcome};
use crate::sql::Sql;
use crate::verbs::desk::Entry;
use crate::{Job, JobWithIds, Role, Settings};
use claims::{Claims, Key};
use flight::InUse;

/// No statement of ours takes this long on a healthy database.
const EXCHANGE_MAX: Duration = Duration::from_secs(5);
/// Slower than this a link to the database is not worth waiting for.
const LINK_BYTES_PER_SECOND_MIN: usize = 500_000;

/// What runs on the database: shared by the engine's handle and its batchers.
#[derive(Debug)]
struct Database {
    pool: Pool,
    partitions: partitions::Partitions,
    /// `None` for command-line tools, which hand out no ids.
    node: Option<RwLock<Node>>,
    claims: Claims,
    hand_over: Arc<HandOver>,
}

/// This process's leased place among the nodes.
#[derive(Debug, Clone)]
struct Node {
    number: u8,
    epoch: i64,
    /// The first epoch in which the number was this installation's, without another in between.
    owner_since: i64,
    ids: Arc<IdGenerator>,
}

/// Kinds of batches that keep their own row of handed-out ids, so that they do not wait for each other.
#[derive(Debug, Clone, Copy)]
enum Lane {
    Accept = 0,
    AcceptWithKey = 1,
    Finish = 2,
}

#[derive(Debug)]
pub(crate) struct Engine {
    database: Arc<Database>,
    accepts: batcher::Batcher,
    /// A lane of its own: a key that another node is just using makes its batch wait, and only it.
    accepts_with_key: batcher::Batcher,
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
        let pool = connect::pool(url, settings.postgres_connections, settings.postgres_ca_file.as_deref())?;
        let mut client = pool.get().await.map_err(StoreError::from)?;
        connect::check(&client).await?;
        migrate::migrate(&mut client).await?;
        let node = match role {
            Role::Tool => None,
            Role::Node { identity } => {
                let taken = bounded(lease::take(&mut client, identity, &clock, None)).await?;
                Some(RwLock::new(taken.ok_or(OpenError::NoFreeNode)?))
            }
        };
        drop(client);
        let (partitions, claims) = (partitions::Partitions::default(), Claims::default());
        let database = Arc::new(Database { pool, partitions, node, claims, hand_over });
        let heartbeat = match role {
            Role::Tool => None,
            Role::Node { identity } => {
                Some(tokio::spawn(lease::keep(Arc::clone(&database), identity.clone(), clock)))
            }
        };
        Ok(Self {
            accepts: batcher::Batcher::start(Arc::clone(&database), Lane::Accept),
            accepts_with_key: batcher::Batcher::start(Arc::clone(&database), Lane::AcceptWithKey),
            database,
            heartbeat,
        })
    }

    pub(crate) fn ids(&self) -> Result<Arc<IdGenerator>, StoreError> {
        self.database.node().map(|node| node.ids)
    }

    pub(crate) async fn write<T>(&self, job: Job<T>) -> Result<T, StoreError> {
        self.database.transaction(job).await
    }

    pub(crate) async fn read<T>(&self, job: Job<T>) -> Result<T, StoreError> {
        self.read_bytes(0, job).await
    }

    /// Reads an answer of about so many bytes.
    async fn read_bytes<T>(&self, bytes: u64, job: Job<T>) -> Result<T, StoreError> {
        let client = self.database.pool.get().await?;
        let result = bounded_for(bytes as usize, job(&Sql::PostgresRead(&client))).await;
        give_back(client, &result);
        result
    }

    pub(crate) async fn accept(&self, send: NewSend) -> Result<Accepted, StoreError> {
        let lane = if send.idempotency.is_some() { &self.accepts_with_key } else { &self.accepts };
        lane.accept(send).await
    }

    pub(crate) async fn body(
        &self,
        server_id: ServerId,
        send_id: SendId,
        size: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let job: Job<_> = Box::new(move |sql| {
            Box::pin(async move {
                let rows = sql
                    .query(
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
        self.read_bytes(size, job).await
    }

    pub(crate) async fn claim(
        &self,
        due_by: Timestamp,
        limit: usize,
        skip_domains: &[DomainName],
    ) -> Result<Vec<Claimed>, StoreError> {
        let node = self.database.node()?;
        let mut turn = self.database.claims.begin().await;
        let lost = turn.held_if_some_are_lost();
        let claimed = self
            .exchange(async |client| {
                if let Some(held) = lost {
                    queue::release_all_but(client, &node, &held).await?;
                }
                queue::claim(client, &node, due_by, limit, skip_domains).await
            })
            .await?;
        turn.end(claimed.iter().map(Claimed::key));
        Ok(claimed)
    }

    /// Claims these entries, if they are free or their claim is of a lease that is over.
    pub(crate) async fn adopt(&self, keys: &[Key]) -> Result<Vec<Claimed>, StoreError> {
        let node = self.database.node()?;
        let mut turn = self.database.claims.begin().await;
        let lost = turn.held_if_some_are_lost();
        let claimed = self
            .exchange(async |client| {
                if let Some(held) = lost {
                    queue::release_all_but(client, &node, &held).await?;
                }
                queue::adopt(client, &node, keys).await
            })
            .await?;
        turn.end(claimed.iter().map(Claimed::key));
        Ok(claimed)
    }

    pub(crate) async fn list_previous(&self) -> Result<Vec<Key>, StoreError> {
        let node = self.database.node()?;
        self.exchange(async |client| queue::list_previous(client, &node).await).await
    }

    pub(crate) async fn release_previous(&self) -> Result<u64, StoreError> {
        let node = self.database.node()?;
        self.exchange(async |client| queue::release_previous(client, &node).await).await
    }

    pub(crate) async fn begin(&self, entries: &[Begin], now: Timestamp) -> Result<Vec<Begun>, StoreError> {
        let node = self.database.node()?;
        self.exchange(async |client| begin::begin(client, &node, entries, now).await).await
    }

    /// Fenced by the lease: a node that lost it settles nothing.
    pub(crate) async fn finish(&self, outcomes: &[Outcome]) -> Result<Vec<bool>, StoreError> {
        if outcomes.is_empty() {
            return Ok(Vec::new());
        }
        let node = self.database.node()?;
        // Event ids are new; their week may be too. Transcripts are of the week of their message.
        let next_id = node.ids.next();
        let with_transcript = outcomes.iter().filter(|outcome| outcome.transcript.is_some());
        let oldest = with_transcript.map(|outcome| outcome.message_id.0).min().unwrap_or(next_id);
        self.database.partitions.ensure(&self.database.pool, oldest.min(next_id), next_id).await?;
        let bytes = outcomes.iter().map(|outcome| outcome.transcript.as_ref().map_or(0, String::len)).sum();
        let in_use = InUse::new(self.database.pool.get().await?);
        let settled = bounded_for(bytes, finish::finish(in_use.client(), &node, outcomes)).await?;
        in_use.done();
        let is_kept = |(outcome, settled): (&Outcome, &bool)| {
            (*settled && outcome.keep_claim && outcome.delivery.status.is_queued()).then(|| outcome.key())
        };
        let kept: HashSet<Key> = outcomes.iter().zip(&settled).filter_map(is_kept).collect();
        let ended: Vec<Key> = outcomes.iter().map(Outcome::key).filter(|key| !kept.contains(key)).collect();
        self.database.claims.forget(&ended);
        Ok(settled)
    }

    pub(crate) async fn release(&self, keys: Vec<Key>) -> Result<(), StoreError> {
        let node = self.database.node()?;
        self.exchange(async |client| queue::release(client, &node, &keys).await).await?;
        self.database.claims.forget(&keys);
        Ok(())
    }

    /// Gives claims of nodes that are gone back to the queue; returns how many.
    pub(crate) async fn reap(&self) -> Result<u64, StoreError> {
        self.exchange(async |client| queue::reap(client).await).await
    }

    /// Like `write`, for what makes new ids: fenced by the lease, and the ids are remembered.
    pub(crate) async fn write_with_ids<T: Send + 'static>(
        &self,
        job: JobWithIds<T>,
    ) -> Result<T, StoreError> {
        let node = self.database.node()?;
        let next_id = node.ids.next();
        self.database.partitions.ensure(&self.database.pool, next_id, next_id).await?;
        let job: Job<T> = Box::new(move |sql| {
            Box::pin(async move {
                let done = job(sql, Arc::clone(&node.ids)).await?;
                lease::note_ids(sql, &node, Lane::Finish).await?;
                Ok(done)
            })
        });
        self.write(job).await
    }

    /// Changes a message that nobody has begun. A claim of it that we know of is over.
    pub(crate) async fn change_waiting<T: Send + 'static>(
        &self,
        key: Key,
        job: JobWithIds<(T, Entry)>,
    ) -> Result<(T, Entry), StoreError> {
        let (done, entry) = self.write_with_ids(job).await?;
        if entry != Entry::Unchanged {
            self.database.claims.forget(&[key]);
        }
        Ok((done, entry))
    }

    /// Runs single statements, each its own transaction.
    async fn exchange<T>(
        &self,
        work: impl AsyncFnOnce(&ClientWrapper) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let client = self.database.pool.get().await?;
        let result = bounded(work(&client)).await;
        give_back(client, &result);
        result.map_err(StoreError::busy)
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
        Ok(node.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    async fn transaction<T>(&self, job: Job<T>) -> Result<T, StoreError> {
        let mut client = self.pool.get().await?;
        let result = bounded(async {
            let transaction = client.transaction().await?;
            let value = job(&Sql::Postgres(&transaction)).await?;
            transaction.commit().await?;
            Ok(value)
        })
        .await;
        give_back(client, &result);
        // Some row was locked for too long; outside `accept` that has nothing to do with a key.
        result.map_err(StoreError::busy)
    }
}

/// A connection that saw trouble may be in the middle of something: throw it away.
fn give_back<T>(client: Object, result: &Result<T, StoreError>) {
    if matches!(result, Err(StoreError::Unavailable(_))) {
        drop(Object::take(client));
    }
}

async fn bounded<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    bounded_for(0, work).await
}

/// Large bodies get the time a slow link needs for them.
async fn bounded_for<T>(
    bytes: usize,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let limit = EXCHANGE_MAX + Duration::from_secs((bytes / LINK_BYTES_PER_SECOND_MIN) as u64);
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Unavailable("the database does not answer".into())),
    }
}
