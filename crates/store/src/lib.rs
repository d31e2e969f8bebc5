//! What is durable, as domain verbs. Two engines implement them and one conformance suite runs against both. Only
//! this crate holds SQL; nothing here knows HTTP, SMTP or MIME.

mod body;
mod error;
mod initial;
mod migrations;
mod postgres;
mod records;
mod sql;
mod sqlite;
mod verbs;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use postroad_model::{
    AccountId, Clock, CredentialId, DomainId, DomainName, IdGenerator, MessageId, SendId, ServerId,
    ServerMode, Timestamp,
};

pub use body::StoredBody;
pub use error::{OpenError, StoreError};
pub use records::*;
use sql::Sql;
use verbs::{accounts, credentials, deliveries, domains, events, idempotency, messages, servers, settings};

/// Where and how to open a store.
#[derive(Debug, Clone)]
pub struct Settings {
    pub database: Database,
    /// SQLite: below this much free disk nothing new is accepted.
    pub disk_reserve_bytes: u64,
    /// SQLite: threads that read.
    pub reader_threads: usize,
    /// PostgreSQL: connections in the pool.
    pub postgres_connections: usize,
    /// PostgreSQL: the authorities to trust instead of the public ones.
    pub postgres_ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Database {
    /// Reads `sqlite:PATH` or `postgres://…`.
    pub fn parse(text: &str) -> std::result::Result<Self, OpenError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        match text.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
            Some(path) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            _ => Err(OpenError::BadUrl(text.to_owned())),
        }
    }
}

/// Who opens the store.
#[derive(Debug, Clone)]
pub enum Role {
    /// A running service. `identity` is kept in its data folder, so that a restart is known to be the same node.
    Node { identity: String },
    /// A command-line tool: works on the set-up, accepts no mail.
    Tool,
}

/// A verb's body: runs on a connection of either engine, inside one transaction.
type Job<T> = Box<dyn for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send>;

/// An open store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    engine: Arc<Engine>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
enum Engine {
    Sqlite { engine: sqlite::Engine, ids: Arc<IdGenerator> },
    Postgres(postgres::Engine),
}

type Result<T> = std::result::Result<T, StoreError>;

impl Store {
    /// Opens the store and brings its schema up to date.
    pub async fn open(
        settings: Settings,
        role: Role,
        clock: Arc<dyn Clock>,
    ) -> std::result::Result<Self, OpenError> {
        let engine = match settings.database.clone() {
            Database::Sqlite(path) => {
                let ids_clock = Arc::clone(&clock);
                let opening = tokio::task::spawn_blocking(move || {
                    let ids_after = move |last_id| IdGenerator::new(Arc::clone(&ids_clock), 0, last_id);
                    sqlite::Engine::open(&path, &settings, &ids_after)
                });
                let (engine, ids) = opening.await.expect("opening a store does not panic")?;
                Engine::Sqlite { engine, ids }
            }
            Database::Postgres(url) => {
                Engine::Postgres(postgres::Engine::open(&url, &settings, &role, Arc::clone(&clock)).await?)
            }
        };
        Ok(Self { engine: Arc::new(engine), clock })
    }

    /// Hands out ids for what will be accepted here.
    pub fn ids(&self) -> Result<Arc<IdGenerator>> {
        match &*self.engine {
            Engine::Sqlite { ids, .. } => Ok(Arc::clone(ids)),
            Engine::Postgres(engine) => engine.ids(),
        }
    }

    async fn write<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.write(Box::new(job)).await,
            Engine::Postgres(engine) => engine.write(Box::new(job)).await,
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.read(Box::new(job)).await,
            Engine::Postgres(engine) => engine.read(Box::new(job)).await,
        }
    }
}

/// Messages: in, out, and what became of them.
impl Store {
    /// The instant a message counts as accepted: when this returns `Stored`, the send, its messages, their queue
    /// entries, events and idempotency key are on stable storage, all of them or none.
    pub async fn accept(&self, send: NewSend) -> Result<Accepted> {
        match &*self.engine {
            // In a task of its own, so that a caller who hangs up between the two writes leaves no orphan.
            Engine::Sqlite { .. } if send.is_large() => {
                let engine = Arc::clone(&self.engine);
                let accepting = tokio::spawn(async move {
                    let Engine::Sqlite { engine, .. } = &*engine else { unreachable!("it was SQLite above") };
                    engine.accept(send).await
                });
                accepting.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the store is closed".into())))
            }
            Engine::Sqlite { engine, .. } => engine.accept(send).await,
            Engine::Postgres(engine) => engine.accept(send).await,
        }
    }

    pub async fn find_idempotent_answer(
        &self,
        server_id: ServerId,
        key: String,
    ) -> Result<Option<StoredAnswer>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(idempotency::find(sql, server_id, key, now))).await
    }

    /// Forgets idempotency keys whose day is over, at most `limit`; returns how many.
    pub async fn purge_idempotency_keys(&self, limit: usize) -> Result<u64> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(idempotency::purge(sql, now, limit as i64))).await
    }

    pub async fn find_message_summary(
        &self,
        server_id: ServerId,
        id: MessageId,
    ) -> Result<Option<MessageSummary>> {
        self.read(move |sql| Box::pin(messages::find_summary(sql, server_id, id))).await
    }

    pub async fn find_message(&self, server_id: ServerId, id: MessageId) -> Result<Option<Message>> {
        self.read(move |sql| Box::pin(messages::find(sql, server_id, id))).await
    }

    /// The stored bytes of a send whose row was found; `size` is what that row says.
    pub async fn read_body(&self, server_id: ServerId, send_id: SendId, size: u64) -> Result<Vec<u8>> {
        let compressed = match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.body(send_id).await?,
            Engine::Postgres(engine) => engine.body(server_id, send_id, size).await?,
        };
        let compressed =
            compressed.ok_or_else(|| StoreError::Internal(format!("send {send_id} has no body")))?;
        body::decompress(&compressed, size)
    }

    /// In time order.
    pub async fn list_deliveries(&self, server_id: ServerId, id: MessageId) -> Result<Vec<Delivery>> {
        self.read(move |sql| Box::pin(deliveries::list(sql, server_id, id))).await
    }

    /// In the order of `seq`.
    pub async fn list_events(&self, server_id: ServerId, id: MessageId) -> Result<Vec<Event>> {
        self.read(move |sql| Box::pin(events::list_of_message(sql, server_id, id))).await
    }

    /// Hands out entries due by then, oldest first, that nobody else has.
    pub async fn claim(&self, due_by: Timestamp, limit: usize) -> Result<Vec<Claimed>> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.claim(due_by, limit).await,
            Engine::Postgres(engine) => engine.claim(due_by, limit).await,
        }
    }

    /// Settles claimed messages, all in one transaction. `false` for those that could not take their outcome any
    /// more; of these nothing was written.
    pub async fn finish(&self, outcomes: Vec<Outcome>) -> Result<Vec<bool>> {
        match &*self.engine {
            Engine::Sqlite { engine, ids } => engine.finish(outcomes, Arc::clone(ids)).await,
            Engine::Postgres(engine) => engine.finish(outcomes).await,
        }
    }

    /// Gives claimed messages back untouched.
    pub async fn release(&self, claimed: Vec<(ServerId, MessageId)>) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => {
                engine.release(&claimed);
                Ok(())
            }
            Engine::Postgres(engine) => engine.release(claimed).await,
        }
    }

    /// Gives the claims of nodes that are gone back to the queue; returns how many.
    pub async fn reap(&self) -> Result<u64> {
        match &*self.engine {
            // Claims are in the memory of the one process there is.
            Engine::Sqlite { .. } => Ok(0),
            Engine::Postgres(engine) => engine.reap().await,
        }
    }
}

/// The set-up: accounts, servers, credentials, domains, settings.
impl Store {
    pub async fn create_account(&self, name: String) -> Result<Account> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(accounts::create(sql, name, now))).await
    }

    pub async fn list_accounts(&self) -> Result<Vec<Account>> {
        self.read(move |sql| Box::pin(accounts::list(sql))).await
    }

    pub async fn set_account_suspended(&self, id: AccountId, reason: Option<String>) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(accounts::set_suspended(sql, id, reason, now))).await
    }

    pub async fn create_server(&self, new: NewServer) -> Result<Server> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(servers::create(sql, new, now))).await
    }

    pub async fn list_servers(&self) -> Result<Vec<Server>> {
        self.read(move |sql| Box::pin(servers::list(sql))).await
    }

    pub async fn set_server_suspended(&self, id: ServerId, reason: Option<String>) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(servers::set_suspended(sql, id, reason, now))).await
    }

    pub async fn set_server_mode(&self, id: ServerId, mode: ServerMode) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(servers::set_mode(sql, id, mode, now))).await
    }

    pub async fn create_credential(&self, new: NewCredential) -> Result<CredentialId> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(credentials::create(sql, new, now))).await
    }

    pub async fn find_credential_access(&self, key: KeyHash) -> Result<Option<CredentialAccess>> {
        self.read(move |sql| Box::pin(credentials::find_access(sql, key))).await
    }

    pub async fn find_credential(&self, id: CredentialId) -> Result<Option<Credential>> {
        self.read(move |sql| Box::pin(credentials::find(sql, id))).await
    }

    /// All credentials, or those of one server.
    pub async fn list_credentials(&self, server_id: Option<ServerId>) -> Result<Vec<Credential>> {
        self.read(move |sql| Box::pin(credentials::list(sql, server_id))).await
    }

    pub async fn revoke_credential(&self, id: CredentialId) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(credentials::revoke(sql, id, now))).await
    }

    /// Puts `new` beside `old`, which stays good until `old_expires_at`. `NotFound` if `old` is revoked.
    pub async fn rotate_credential(
        &self,
        old: CredentialId,
        old_expires_at: Timestamp,
        new: NewCredential,
    ) -> Result<CredentialId> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(credentials::rotate(sql, old, old_expires_at, new, now))).await
    }

    pub async fn touch_credentials(&self, used: Vec<(CredentialId, Timestamp)>) -> Result<()> {
        self.write(move |sql| Box::pin(credentials::touch(sql, used))).await
    }

    pub async fn create_domain(&self, new: NewDomain) -> Result<Domain> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(domains::create(sql, new, now))).await
    }

    pub async fn find_domain(&self, server_id: ServerId, name: DomainName) -> Result<Option<Domain>> {
        self.read(move |sql| Box::pin(domains::find(sql, server_id, name))).await
    }

    /// All domains, or those of one server.
    pub async fn list_domains(&self, server_id: Option<ServerId>) -> Result<Vec<Domain>> {
        self.read(move |sql| Box::pin(domains::list(sql, server_id))).await
    }

    /// `None` takes the verified state away.
    pub async fn set_domain_verified(&self, id: DomainId, verified_at: Option<Timestamp>) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(domains::set_verified(sql, id, verified_at, now))).await
    }

    pub async fn find_setting(&self, key: &'static str) -> Result<Option<String>> {
        self.read(move |sql| Box::pin(settings::find(sql, key))).await
    }

    /// `None` removes the setting.
    pub async fn set_setting(&self, key: &'static str, value: Option<String>) -> Result<()> {
        self.write(move |sql| Box::pin(settings::set(sql, key, value))).await
    }
}
