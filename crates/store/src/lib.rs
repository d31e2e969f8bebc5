//! Durable storage: one folder or file for each subject, with its records, its SQL and its methods of `Store`. Two
//! engines, SQLite and PostgreSQL, run the same operations, and one conformance suite runs against both. Only this
//! crate holds SQL; nothing here knows HTTP, SMTP or MIME.

mod accept;
mod analytics;
mod any_result;
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
mod retention;
mod returns;
mod run;
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
use postroad_model::{Clock, IdGenerator, ServerId, Shared};
use tokio::sync::watch;

use accept::hand_over::HandOver;
use events::notifier::EventNotifier;
use sql::Sql;
use suppressions::last_suppressed::LastSuppressed;

pub use accept::{
    Accepted, AccountLimits, FreshMessages, FreshRecipient, FreshSink, HELD_IN_DEVELOPMENT, InitialState,
    LimitOwner, LimitUse, NewRecipient, NewSend, OneClickUnsubscribe, SendInfo, SendOptions, SendTracking,
};
pub use analytics::{
    Breakdown, CountProgress, CounterRow, CountingRules, Counts, Dimension, Dimensions, Grain, Histogram,
    LIMITED_VALUES_MAX, Metric, OTHER_PROVIDER, OTHER_VALUES, StoredValue, Sums,
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
pub use erase::{ERASED_ADDRESS, EraseResult};
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
    NewSource, Pool, Source, SourceChange, SourceCounts, SourceDay, SourceList, SourceScope, WarmupPause,
};
pub use queue::{
    Backlog, BeginRequest, BeginResult, CancelResult, ClaimSkips, ClaimedEntry, QueueEntry, QueueFilter,
    QueueStats, Reschedule, RetryResult, ScheduleChange, ScheduleChangeResult, ScheduledOf, ScheduledPage,
    ServerQueue, WaitingFor,
};
pub use retention::{OldRows, Removal, RemovalProgress};
pub use returns::{NewReturn, ReturnEffect, ReturnResult};
pub use search::{
    BLOCKS_PER_MERGE, FilterTerm, IndexProgress, Matcher, MessageName, Needle, SearchFilter, SearchItem,
    SearchPage,
};
pub use setup::{
    Account, AccountCeilings, AccountCeilingsChange, AccountFilter, AccountKey, AccountKeyFilter,
    AccountKeyOwner, Ceiling, Ceilings, CeilingsBySetter, CeilingsChange, Creation, Credential,
    CredentialAccess, CredentialChange, CredentialFilter, KeyHash, NewAccountKey, NewCreation, NewCredential,
    NewServer, PeriodCounts, PoolMove, Server, ServerChange, ServerFilter, ServerRetention, ServerTracking,
    ServerUpdateResult, SetBy, UpdateResult,
};
pub use suppressions::{AddedSuppression, NewSuppression, Suppression, SuppressionCursor, SuppressionFilter};
pub use templates::{
    NewTemplate, Template, TemplateChange, TemplateContent, TemplateFormat, TemplateKind, TemplateRef,
    TemplateTexts, TemplateVersion, TemplateVersionInfo,
};
pub use tracking::{NewTrackingEvent, TrackingEventKind};
pub use users::{
    FirstUser, Invitation, InvitationFilter, NewInvitation, NewSavedSearch, NewUser, NewUserSession,
    SavedSearch, User, UserChange, UserFilter, UserSession, UserToken, UserTokenKind, UserUpdateResult,
};
pub use webhooks::{
    NewWebhook, NewWebhookAttempt, Replay, ReplayProgress, Webhook, WebhookAttempt, WebhookAttemptFilter,
    WebhookAttemptPage, WebhookChange, WebhookDue, WebhookNext, WebhookOutcome, WebhookSecret, WebhookWork,
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
type SqlOperation<T> = Box<dyn for<'a> FnOnce(&'a Sql<'a>) -> BoxFuture<'a, Result<T>> + Send>;

/// A `SqlOperation` that creates ids.
type SqlOperationWithIds<T> =
    Box<dyn for<'a> FnOnce(&'a Sql<'a>, Arc<IdGenerator>) -> BoxFuture<'a, Result<T>> + Send>;

/// An open store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    engine: Shared<Engine>,
    clock: Arc<dyn Clock>,
    /// Hands freshly accepted messages to delivery.
    hand_over: Arc<HandOver>,
    /// Incremented by every change that the delivery engine should see at once (`Store::changes` lists them).
    changes: Arc<watch::Sender<u64>>,
    /// Incremented whenever a message is queued again.
    queue_changes: Arc<watch::Sender<u64>>,
    audit_queues: Arc<audit::AuditQueues>,
    /// Notified after every commit that appended events.
    notifier: Arc<EventNotifier>,
    /// Notified when an inspector is opened or cleared, or takes a request.
    inspector_notifier: Arc<EventNotifier>,
    last_suppressed: Arc<LastSuppressed>,
    /// The server whose scheduled messages became pending last; the next call begins with the server after this one.
    last_promoted: Arc<AtomicI64>,
    /// SQLite: for each server with its own retention, the id of the send at which the next removal of its old bodies
    /// begins.
    body_removal_starts: Arc<Mutex<HashMap<ServerId, i64>>>,
    long_reads_max: usize,
    /// Name by which this node is known after a restart; `None` for tools.
    identity: Option<Arc<str>>,
    /// Facts for the audit entry that the next change writes.
    audit: Option<Arc<Audit>>,
}

#[derive(Debug)]
enum Engine {
    Sqlite { engine: sqlite::Engine, ids: Arc<IdGenerator> },
    Postgres(postgres::Engine),
}

/// Description of a change, for the audit log.
type ChangeDescription = serde_json::Map<String, serde_json::Value>;

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
            engine: Shared::new(engine),
            clock,
            hand_over,
            changes: Arc::new(watch::Sender::new(0)),
            queue_changes: Arc::new(watch::Sender::new(0)),
            audit_queues: Arc::default(),
            notifier: Arc::default(),
            inspector_notifier: Arc::default(),
            last_suppressed: Arc::default(),
            last_promoted: Arc::default(),
            body_removal_starts: Arc::default(),
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

    /// Generator of ids for messages that this process accepts.
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

    /// Whether other nodes may use the same database.
    pub fn may_have_other_nodes(&self) -> bool {
        !self.is_sqlite()
    }

    fn is_sqlite(&self) -> bool {
        matches!(*self.engine, Engine::Sqlite { .. })
    }
}
