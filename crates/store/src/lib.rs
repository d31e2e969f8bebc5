//! Durable storage: one folder or file for each subject, with its records, its SQL and its methods of `Store`. Two
//! engines, SQLite and PostgreSQL, run the same operations, and one conformance suite runs against both. Only this
//! crate holds SQL; nothing here knows HTTP, SMTP or MIME.

mod accept;
mod analytics;
mod audit;
mod clock_back;
mod delivery_setup;
mod domains;
mod erase;
mod error;
mod events;
mod gates;
mod health;
mod idempotency;
mod inspectors;
mod jobs;
mod messages;
mod migrations;
mod name_part;
mod nodes;
mod outcomes;
mod pacing_notes;
mod pools;
mod postgres;
mod queue;
mod result_slot;
mod retention;
mod returns;
mod search;
mod setup;
mod sql;
mod sqlite;
mod suppressions;
mod templates;
mod tracking;
mod users;
mod varint;
mod webhooks;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{Clock, IdGenerator, ServerId, Timestamp};
use tokio::sync::watch;

use accept::hand_over::HandOver;
use events::notifier::EventNotifier;
use result_slot::{ResultSlot, with_ids_and_slot, with_slot};
use sql::{Row, Sql, Value};
use suppressions::last_suppressed::LastSuppressed;

pub use accept::{
    Accepted, AccountLimits, Fresh, FreshRecipient, FreshSink, HELD_IN_DEVELOPMENT, InitialState, LimitOwner,
    LimitUse, NewRecipient, NewSend, OwnUnsubscribe, SendInfo, SendOptions, SendTracking,
};
pub use analytics::{
    Breakdown, CountProgress, CounterRow, CountingRules, Counts, Dimensions, Grain, Histogram, LABELS_MAX,
    Metric, OTHER_LABELS, OTHER_PROVIDER, Sums,
};
pub use audit::{
    Audit, AuditEntry, AuditFilter, AuditPage, AuditSubject, AuditVerdict, HiddenActors, INSTALLATION,
};
pub use delivery_setup::{DeliverySetup, ServerDelivery, SetupMark};
pub use domains::{
    Domain, DomainCheck, DomainDelivery, DomainFilter, DomainKey, DomainLink, DomainOwner, DomainReport,
    DomainReportSum, DomainScope, DomainTracking, KeyAlgorithm, KeyState, NameUse, NewDkimKey, NewDomain,
    NewDomainLink, OwnerDomains, ReportKind, SendingDomain, SigningKey, VerifiedBy,
};
pub use erase::{ERASED_ADDRESS, Erased};
pub use error::{OpenError, StoreError};
pub use events::{
    Event, EventMessage, FeedEvent, FeedPage, FeedQuery, NewEvent, RecentEvents, RecentEventsQuery,
};
pub use gates::{Gate, NewGate};
pub use idempotency::{Idempotency, StoredAnswer};
pub use inspectors::{Inspector, InspectorRequest, NewInspector, NewInspectorRequest};
pub use jobs::{JobKind, JobPart, JobProblem, JobState, JobStep, MessageJob, NewJob};
pub use messages::{Message, MessageSummary, StoredBody};
pub use nodes::{CertificateNote, NodeDescription, NodeListener, NodeRecord};
pub use outcomes::{Delivery, NewDelivery, Outcome};
pub use pacing_notes::PacingNote;
pub use pools::{
    NewSource, Pool, Source, SourceChange, SourceCounts, SourceDay, SourceList, SourcesFor, WarmupPause,
};
pub use queue::{
    Backlog, Begin, Begun, Cancelled, ClaimSkips, Claimed, QueueEntry, QueueFilter, QueueStats, Reschedule,
    Retried, ScheduleChange, ScheduleChanged, ScheduledOf, ScheduledPage, ServerQueue, WaitingFor,
};
pub use retention::{OldRows, Removal, Removed};
pub use returns::{NewReturn, ReturnEffect, Taken};
pub use search::{
    BLOCKS_PER_MERGE, FilterTerm, IndexProgress, Matcher, MessageName, Needle, SearchFilter, SearchItem,
    SearchPage,
};
pub use setup::{
    Account, AccountCeilings, AccountCeilingsChange, AccountFilter, AccountKey, AccountKeyFilter,
    AccountKeyOwner, Ceiling, Ceilings, CeilingsChange, Creation, Credential, CredentialAccess,
    CredentialChange, CredentialFilter, KeyHash, NewAccountKey, NewCreation, NewCredential, NewServer,
    PeriodCounts, PoolMove, Server, ServerChange, ServerFilter, ServerRetention, ServerTracking,
    ServerUpdate, SetBy, SetCeilings, Updated,
};
pub use suppressions::{AddedSuppression, NewSuppression, Suppression, SuppressionCursor, SuppressionFilter};
pub use templates::{
    NewTemplate, Template, TemplateChange, TemplateContent, TemplateFormat, TemplateKind, TemplateRef,
    TemplateTexts, TemplateVersion, TemplateVersionInfo,
};
pub use tracking::{NewTrackingEvent, TrackingEventKind};
pub use users::{
    FirstUser, Invitation, InvitationFilter, NewInvitation, NewSavedSearch, NewUser, NewUserSession,
    SavedSearch, User, UserChange, UserChanged, UserFilter, UserSession, UserToken, UserTokenKind,
};
pub use webhooks::{
    FoundAttempts, NewWebhook, NewWebhookAttempt, Replay, Replayed, Webhook, WebhookAttempt,
    WebhookAttemptFilter, WebhookChange, WebhookDue, WebhookNext, WebhookOutcome, WebhookSecret, WebhookWork,
};

/// Settings of a store.
#[derive(Debug, Clone)]
pub struct Settings {
    pub database: Database,
    /// SQLite: with less free disk space, new messages are refused.
    pub disk_reserve_bytes: u64,
    /// SQLite: number of threads that read.
    pub reader_threads: usize,
    /// PostgreSQL: maximum number of connections in the pool; values below four count as four.
    pub postgres_connections: usize,
    /// PostgreSQL: certificate authorities to trust instead of the public ones.
    pub postgres_ca_file: Option<PathBuf>,
}

impl Settings {
    /// Settings for tests and tools: no disk reserve, and one reader thread or a few connections.
    pub fn small(database: Database) -> Self {
        Self {
            database,
            disk_reserve_bytes: 0,
            reader_threads: 1,
            postgres_connections: 4,
            postgres_ca_file: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Database {
    /// Reads `sqlite:PATH` or `postgres://…`.
    pub fn parse(text: &str) -> Result<Self, OpenError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        match text.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
            Some(path) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            _ => Err(OpenError::BadUrl(text.to_owned())),
        }
    }
}

/// Kind of process that opens the store.
#[derive(Debug, Clone)]
pub enum Role {
    /// A running service. `identity` is stored in its data folder, so that the node is recognised after a restart.
    Node { identity: String },
    /// A command-line tool: changes the setup. On PostgreSQL it cannot accept mail: the ids of messages contain the
    /// number of their node, and a tool has none.
    Tool,
}

/// An operation, run on a connection of either engine: a write in one transaction, a read without one.
type Job<T> = Box<dyn for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send>;

/// A `Job` that creates ids.
type JobWithIds<T> =
    Box<dyn for<'a> FnOnce(&'a Sql<'a>, Arc<IdGenerator>) -> BoxFuture<'a, Result<T>> + Send>;

/// An open store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    engine: Arc<Engine>,
    clock: Arc<dyn Clock>,
    /// Hands freshly accepted messages to delivery.
    hand_over: Arc<HandOver>,
    /// Incremented by every change that the delivery engine should see at once.
    changes: Arc<watch::Sender<u64>>,
    /// Incremented whenever a message is queued again.
    queue_changes: Arc<watch::Sender<u64>>,
    audit_turns: Arc<audit::AuditTurns>,
    /// Notified after every commit that appended events.
    notifier: Arc<EventNotifier>,
    /// Notified when an inspector is opened or cleared, or takes a request.
    inspector_notifier: Arc<EventNotifier>,
    last_suppressed: Arc<LastSuppressed>,
    /// The server whose scheduled messages became pending last: the next turn begins with the server after it.
    last_promoted: Arc<AtomicI64>,
    /// SQLite: for each server with its own retention, the send before which all bodies are removed.
    bodies_gone: Arc<Mutex<HashMap<ServerId, i64>>>,
    long_reads_max: usize,
    /// Name by which this node is known after a restart; `None` for tools.
    identity: Option<Arc<str>>,
    /// Entry to write into the audit log with the next change.
    audit: Option<Arc<Audit>>,
}

#[derive(Debug)]
enum Engine {
    Sqlite { engine: sqlite::Engine, ids: Arc<IdGenerator> },
    Postgres(postgres::Engine),
}

/// Description of a change, for the audit log.
type Described = serde_json::Map<String, serde_json::Value>;

type Result<T, E = StoreError> = std::result::Result<T, E>;

#[boxed_futures]
impl Store {
    /// Opens the store and updates its schema.
    pub async fn open(settings: Settings, role: Role, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let hand_over = Arc::new(HandOver::default());
        let for_engine = Arc::clone(&hand_over);
        let readers = match settings.database {
            Database::Sqlite(_) => settings.reader_threads,
            Database::Postgres(_) => settings.postgres_connections,
        };
        let engine = match settings.database.clone() {
            Database::Sqlite(path) => {
                let (ids_clock, now) = (Arc::clone(&clock), clock.now());
                let opening = tokio::task::spawn_blocking(move || {
                    let ids_after = move |last_id| IdGenerator::new(Arc::clone(&ids_clock), 0, last_id);
                    sqlite::Engine::open(&path, &settings, for_engine, &ids_after, now)
                });
                let (engine, ids) = opening.await.expect("opening a store does not panic")?;
                Engine::Sqlite { engine, ids }
            }
            Database::Postgres(url) => {
                let opening = postgres::Engine::open(&url, &settings, &role, Arc::clone(&clock), for_engine);
                Engine::Postgres(opening.await?)
            }
        };
        Ok(Self {
            engine: Arc::new(engine),
            clock,
            hand_over,
            changes: Arc::new(watch::Sender::new(0)),
            queue_changes: Arc::new(watch::Sender::new(0)),
            audit_turns: Arc::default(),
            notifier: Arc::default(),
            inspector_notifier: Arc::default(),
            last_suppressed: Arc::default(),
            last_promoted: Arc::default(),
            bodies_gone: Arc::default(),
            long_reads_max: readers.saturating_sub(1).max(1),
            identity: match role {
                Role::Node { identity } => Some(identity.into()),
                Role::Tool => None,
            },
            audit: None,
        })
    }

    /// Maximum number of readers that may be busy for a long time at once: all but one, if there are several.
    pub fn long_reads_max(&self) -> usize {
        self.long_reads_max
    }

    /// Generator of ids for messages accepted here.
    pub fn ids(&self) -> Result<Arc<IdGenerator>> {
        match &*self.engine {
            Engine::Sqlite { ids, .. } => Ok(Arc::clone(ids)),
            Engine::Postgres(engine) => engine.ids(),
        }
    }

    /// Changes whenever this process makes a change that delivery should see: of accounts, servers, pools, sources,
    /// gates or domains.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Changes whenever a message is queued again in this process: retried, released or rescheduled.
    pub fn queue_changes(&self) -> watch::Receiver<u64> {
        self.queue_changes.subscribe()
    }

    /// Like `write`, for changes that the delivery engine should see at once.
    async fn change<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let done = self.write(job).await?;
        self.note_change();
        Ok(done)
    }

    fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Runs a job in a transaction that may write. Records the change in the audit log if the store is `audited`.
    async fn write<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (job, slot) = with_slot(job);
        self.write_audited(job).await?;
        Ok(slot.take())
    }

    async fn write_audited(&self, job: Job<()>) -> Result<()> {
        let Some(audit) = self.audit.clone() else { return self.write_unaudited(job).await };
        let now = self.clock.now();
        let audited: Job<()> = Box::new(move |sql| {
            Box::pin(async move { audit::append::around(sql, &audit, now, job(sql)).await })
        });
        self.write_unaudited(audited).await
    }

    /// Like `write`, for changes that the subject's row does not show: the job also returns a description of its change
    /// for the audit log, or `None` if it changed nothing.
    async fn write_described<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<(T, Option<Described>)>> + Send + 'static,
    ) -> Result<T> {
        let slot = ResultSlot::new();
        let inner = slot.clone();
        let (audit, now) = (self.audit.clone(), self.clock.now());
        let described: Job<()> = Box::new(move |sql| {
            Box::pin(async move {
                let (done, changed) = job(sql).await?;
                inner.put(done);
                if let (Some(audit), Some(changed)) = (audit, changed) {
                    audit::append::describe(sql, &audit, changed, now).await?;
                }
                Ok(())
            })
        });
        self.write_unaudited(described).await?;
        Ok(slot.take())
    }

    /// Extends a job: it also writes an audit entry that describes its change, if it changed anything.
    fn describing<T: Send + 'static>(
        &self,
        job: JobWithIds<T>,
        describe: impl FnOnce(&T) -> Option<Described> + Send + 'static,
    ) -> JobWithIds<T> {
        let Some(audit) = self.audit.clone() else { return job };
        let now = self.clock.now();
        Box::new(move |sql, ids| {
            Box::pin(async move {
                let done = job(sql, ids).await?;
                if let Some(changed) = describe(&done) {
                    audit::append::describe(sql, &audit, changed, now).await?;
                }
                Ok(done)
            })
        })
    }

    /// Waits for the turn to change a message with an audit entry (`describing`). Keep the turn until the change is
    /// committed.
    async fn wait_to_describe(&self, server_id: ServerId) -> Option<audit::Turn<'_>> {
        if self.audit.is_none() || self.is_sqlite() {
            return None;
        }
        Some(self.audit_turns.wait(server_id).await)
    }

    async fn write_unaudited(&self, job: Job<()>) -> Result<()> {
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.write(job).await,
            Engine::Postgres(engine) => engine.write(job).await,
        }
    }

    /// Like `write`, for operations that create ids.
    async fn write_with_ids<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>, Arc<IdGenerator>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        match &*self.engine {
            Engine::Sqlite { ids, .. } => {
                let ids = Arc::clone(ids);
                self.write(move |sql| job(sql, ids)).await
            }
            Engine::Postgres(engine) => {
                let (job, slot) = with_ids_and_slot(job);
                let job = match self.audit.clone() {
                    Some(audit) => around_with_ids(audit, self.clock.now(), job),
                    None => job,
                };
                engine.write_with_ids(job).await?;
                Ok(slot.take())
            }
        }
    }

    /// Reads all rows of one query.
    async fn fetch_all<T: Send + 'static>(
        &self,
        text: &'static str,
        params: Vec<Value>,
        read: fn(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows = self.read(move |sql| Box::pin(async move { sql.query(text, &params).await }));
        Box::pin(rows).await?.iter().map(read).collect()
    }

    /// Reads the first row of a query, if there is one.
    async fn fetch_opt<T: Send + 'static>(
        &self,
        text: &'static str,
        params: Vec<Value>,
        read: fn(&Row) -> Result<T>,
    ) -> Result<Option<T>> {
        let row = self.read(move |sql| Box::pin(async move { sql.query_opt(text, &params).await }));
        Box::pin(row).await?.as_ref().map(read).transpose()
    }

    /// Runs one statement that writes; returns the number of rows it changed.
    async fn execute(&self, text: &'static str, params: Vec<Value>) -> Result<u64> {
        // Boxed: otherwise it would make the futures of all its callers large.
        Box::pin(self.write(move |sql| Box::pin(async move { sql.execute(text, &params).await }))).await
    }

    /// Runs one statement that must change a row; otherwise `NotFound`.
    async fn execute_one(&self, text: &'static str, params: Vec<Value>) -> Result<()> {
        Box::pin(self.write(move |sql| Box::pin(async move { sql.change(text, &params).await }))).await
    }

    /// Whether other nodes may use the same database.
    pub fn may_have_other_nodes(&self) -> bool {
        !self.is_sqlite()
    }

    fn is_sqlite(&self) -> bool {
        matches!(*self.engine, Engine::Sqlite { .. })
    }

    /// Runs a job that only reads.
    async fn read<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (job, slot) = with_slot(job);
        match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.read(job).await?,
            Engine::Postgres(engine) => engine.read(job).await?,
        }
        Ok(slot.take())
    }
}

/// Extends a job: it also records its change in the audit log.
fn around_with_ids(audit: Arc<Audit>, now: Timestamp, job: JobWithIds<()>) -> JobWithIds<()> {
    Box::new(move |sql, ids| {
        Box::pin(async move { audit::append::around(sql, &audit, now, job(sql, ids)).await })
    })
}
