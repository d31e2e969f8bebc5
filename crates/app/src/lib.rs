//! Application operations, one function each. Entry points (HTTP, SMTP, command line) translate and call these;
//! decisions are made here. The crate has no HTTP handlers, pages or listeners.

pub mod access;
pub mod accounts;
mod act_on_server;
pub mod admin;
pub mod analytics;
mod authenticate;
mod authenticate_actor;
mod bad_keys;
mod budget;
mod dev_setup;
pub mod domains;
mod failed_steps;
mod feed;
mod find_message;
mod housekeeping;
mod inbox_audit;
mod inspectors;
mod installation;
mod installation_status;
pub mod ip_pools;
mod jobs;
mod log_in;
mod long_reads;
mod maintenance;
mod names;
mod nodes;
pub mod queue;
mod recent_events;
mod refusal;
mod retention;
mod returns;
mod sealing;
mod search;
mod secrets;
pub mod send;
mod server_settings;
pub mod suppressions;
pub mod templates;
mod timeline;
pub mod tracking_events;
mod ttl_cache;
pub mod users;
mod webhook_key;
mod webhooks;

use std::sync::{Arc, OnceLock};

use postroad_mail::{MessageIdKey, ReturnPathKey};
use postroad_model::{
    AccountKeyId, Clock, CredentialId, DomainName, EmailAddress, Limits, ServerId, Shared, UserSessionId,
};
use postroad_store::{AccountKey, CredentialAccess, KeyHash, SendingDomain, Store};

pub use authenticate::{AuthFailure, Caller, KeyKind, Peer};
pub use authenticate_actor::PresentedKeys;
pub use dev_setup::{DEV_DOMAIN, DevKeyIds, DevSetup, DevSetupRequest};
pub use failed_steps::FailedSteps;
pub use feed::{FeedRequest, FeedStart};
pub use find_message::{FoundMessage, LookupError, MessageDetail, view_message};
pub use housekeeping::Housekeeping;
pub use inspectors::{AdmittedRequest, InspectorRefusal, InspectorView};
pub use installation::Installation;
pub use installation_status::InstallationStatus;
pub use jobs::{ActionFailure, JobRefusal, JobTask, MessageAction, StartedJob};
pub use log_in::{LoginFailure, Submitter};
pub use nodes::{CERTIFICATE_WARNING_TIME, certificate_problem};
pub use postroad_mail::{
    AttachmentView, Correspondents, Extracted, MessageView, NamedAddress, correspondents, extract,
    visible_text, without_loading_elements,
};
pub use recent_events::EventSelection;
pub use refusal::{AddressList, FieldProblem, Refusal};
pub use retention::{Retention, RetentionTask};
pub use returns::{
    Destination, ReportProblem, ReturnAddress, ReturnCounts, ReturnReceiver, ReturnRefusal, ReturnedMail,
};
pub use sealing::{SealingKey, UnsealError};
pub use search::{IndexTask, SearchRequest, parse_status};
pub use server_settings::ServerChangeRequest;
pub use timeline::{LocatedMessages, MessageEvent, Timeline, TimelineItem, TimelineKind, refusal_rule};
pub use webhooks::{
    EventFilter, ReplayRequest, WebhookChanges, WebhookDraft, WebhookRefusal, events_unless_all,
};

use send::UsablePool;

/// Default domain of simulator recipients.
pub const SIMULATOR_DOMAIN: &str = "sim.postroad.test";

/// Default maximum number of webhooks of one server.
const WEBHOOKS_PER_SERVER: usize = 50;

/// Default maximum number of domains of one server.
const DOMAINS_PER_SERVER: usize = 1_000;

/// Default length of the warm-up plan in days.
const WARM_UP_DAYS: u32 = 21;

/// Maximum number of password-reset mails that are put into the queue at the same time.
const RESET_MAILS_CONCURRENT_MAX: usize = 8;

/// Settings from the operator.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Host name of this node; nodes of one installation may have different names.
    pub hostname: DomainName,
    pub limits: Limits,
    /// Domain whose recipients are simulated instead of delivered to.
    pub simulator_domain: DomainName,
    /// Give new domains a second DKIM key, Ed25519.
    pub dkim_ed25519: bool,
    /// Retention periods of the installation.
    pub retention: Retention,
    /// Maximum number of webhooks of one server. Each costs a row for every matching event, in the event's
    /// transaction.
    pub webhooks_per_server: usize,
    /// Maximum number of domains of one server; also of one account, not counting domains of its servers.
    pub domains_per_server: usize,
    /// How often domains are checked.
    pub domain_checks: domains::CheckIntervals,
    /// Length of the warm-up plan of a new source address.
    pub warm_up_days: u32,
    pub feedback: FeedbackSettings,
    /// Key that seals secrets in the store.
    pub sealing_key: SealingKey,
    /// Sender of mail to people who use the portal; `None` for `postroad@<hostname>`.
    pub notices_from: Option<EmailAddress>,
}

/// Addresses for complaints in addition to `fbl@<hostname>`, and the recipient of other mail to `postmaster@` and
/// `abuse@`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedbackSettings {
    /// Further addresses for complaints.
    pub addresses: Vec<EmailAddress>,
    /// Recipient of mail to `postmaster@` and `abuse@` that is not a complaint; without it such mail is refused.
    pub forward_to: Option<EmailAddress>,
}

impl Settings {
    /// Default settings.
    pub fn of(hostname: DomainName) -> Self {
        let simulator_domain = DomainName::parse(SIMULATOR_DOMAIN).expect("the constant is a domain name");
        Self {
            hostname,
            limits: Limits::default(),
            simulator_domain,
            dkim_ed25519: false,
            retention: Retention::default(),
            webhooks_per_server: WEBHOOKS_PER_SERVER,
            domains_per_server: DOMAINS_PER_SERVER,
            domain_checks: domains::CheckIntervals::default(),
            warm_up_days: WARM_UP_DAYS,
            feedback: FeedbackSettings::default(),
            sealing_key: SealingKey::generate(),
            notices_from: None,
        }
    }
}

/// Long-lived parts of a running service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct App {
    inner: Shared<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Durable data.
    store: Store,
    /// Source of the current time.
    clock: Arc<dyn Clock>,
    /// Limits on one request and one message.
    limits: Limits,
    /// Host name of this node, used in `Received` and Message-IDs.
    hostname: DomainName,
    /// Host name of the installation as it was when this node started.
    installation_host: OnceLock<DomainName>,
    /// Domain whose recipients are simulated, not delivered to.
    simulator_domain: DomainName,
    /// Give new domains a second DKIM key.
    dkim_ed25519: bool,
    /// Cache of the pools that a send may name.
    pools: ttl_cache::TtlCache<ServerId, Arc<[UsablePool]>>,
    /// Cache of credentials, so that most requests are authenticated without a read.
    access: ttl_cache::TtlCache<KeyHash, CredentialAccess>,
    /// Cache of account and operator keys.
    account_keys: ttl_cache::TtlCache<KeyHash, AccountKey>,
    /// Cache of verified domains.
    verified_domains: ttl_cache::TtlCache<(ServerId, DomainName), SendingDomain>,
    /// Looks up the DNS records of domains; set when the process starts.
    domain_checker: OnceLock<domains::DomainChecker>,
    /// Limits on the number of domains and the work for them.
    domain_limits: domains::DomainLimits,
    /// How often domains are checked.
    check_intervals: domains::CheckIntervals,
    /// Base URL of tracking links, once the listeners are known.
    tracking_base: OnceLock<String>,
    /// Key of the MAC in Message-IDs, once the installation's secret is known; until then Message-IDs are random.
    message_id_key: OnceLock<MessageIdKey>,
    /// Recognises return paths; set together with `message_id_key`.
    return_path_key: OnceLock<ReturnPathKey>,
    /// Cache of the maintenance flag.
    maintenance: ttl_cache::TtlCache<(), bool>,
    /// Cache of the server of the service's own mail.
    service_server: ttl_cache::TtlCache<(), Option<ServerId>>,
    /// Cache of networks that credentials are bound to.
    bound_networks: ttl_cache::TtlCache<(), Vec<log_in::BoundNetwork>>,
    /// Failures of client addresses that sent invalid keys or SMTP secrets.
    bad_keys: bad_keys::BadKeys,
    /// Idempotency keys of requests in progress.
    in_progress: send::InProgress,
    /// Last use of credentials, until housekeeping stores it.
    used_credentials: housekeeping::LastUses<CredentialId>,
    /// Last use of account and operator keys, until housekeeping stores it.
    used_account_keys: housekeeping::LastUses<AccountKeyId>,
    /// Retention periods of the installation.
    retention: Retention,
    webhooks_per_server: usize,
    /// Number of days after which an address is warm.
    warm_up_days: u32,
    /// Addresses for complaints, and the recipient of other mail to the operator.
    feedback: FeedbackSettings,
    /// Concurrency limit of calls that may hold many rows, such as searches.
    long_reads: long_reads::LongReads,
    /// Wakes the task that works on jobs.
    job_created: tokio::sync::Notify,
    /// Calls that wait for events.
    waiting_calls: feed::WaitingCalls,
    /// Budgets for what is stored for inspectors.
    inspector_budgets: inspectors::InspectorBudgets,
    /// Compiled templates that were used recently.
    templates: templates::Templates,
    /// Computes password hashes, a few at a time.
    password_hasher: users::PasswordHasher,
    /// Key that seals secrets in the store.
    sealing_key: SealingKey,
    /// Last use of sessions, until housekeeping stores it.
    used_sessions: housekeeping::LastUses<UserSessionId>,
    /// Permits to put password-reset mails into the queue.
    reset_mail_permits: Arc<tokio::sync::Semaphore>,
    /// Sender of mail to people who use the portal.
    notices_from: Option<EmailAddress>,
    /// Counts of returned mail.
    return_counters: returns::ReturnCounters,
    /// Base URL of the portal, once the listeners are known.
    portal_base: OnceLock<String>,
    /// Options of `postroad dev`.
    dev: dev_setup::DevOptions,
}

impl App {
    pub fn new(store: Store, clock: Arc<dyn Clock>, limits: Limits, hostname: DomainName) -> Self {
        Self::with_settings(store, clock, Settings { limits, ..Settings::of(hostname) })
    }

    pub fn with_settings(store: Store, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        let Settings {
            hostname,
            limits,
            simulator_domain,
            dkim_ed25519,
            retention,
            webhooks_per_server,
            domains_per_server,
            domain_checks,
            warm_up_days,
            feedback,
            sealing_key,
            notices_from,
        } = settings;
        let long_reads = long_reads::LongReads::with_max(store.long_reads_max());
        Self {
            inner: Shared::new(Inner {
                store,
                clock,
                limits,
                hostname,
                installation_host: OnceLock::new(),
                simulator_domain,
                dkim_ed25519,
                pools: ttl_cache::TtlCache::default(),
                access: ttl_cache::TtlCache::default(),
                account_keys: ttl_cache::TtlCache::default(),
                verified_domains: ttl_cache::TtlCache::default(),
                domain_checker: OnceLock::new(),
                domain_limits: domains::DomainLimits::new(domains_per_server),
                check_intervals: domain_checks,
                tracking_base: OnceLock::new(),
                message_id_key: OnceLock::new(),
                return_path_key: OnceLock::new(),
                maintenance: ttl_cache::TtlCache::default(),
                service_server: ttl_cache::TtlCache::default(),
                bound_networks: ttl_cache::TtlCache::default(),
                bad_keys: bad_keys::BadKeys::default(),
                in_progress: send::InProgress::default(),
                used_credentials: housekeeping::LastUses::default(),
                used_account_keys: housekeeping::LastUses::default(),
                retention,
                webhooks_per_server,
                warm_up_days,
                feedback,
                long_reads,
                job_created: tokio::sync::Notify::new(),
                waiting_calls: feed::WaitingCalls::default(),
                inspector_budgets: inspectors::InspectorBudgets::new(),
                templates: templates::Templates::default(),
                password_hasher: users::PasswordHasher::default(),
                sealing_key,
                used_sessions: housekeeping::LastUses::default(),
                reset_mail_permits: Arc::new(tokio::sync::Semaphore::new(RESET_MAILS_CONCURRENT_MAX)),
                notices_from,
                return_counters: returns::ReturnCounters::default(),
                portal_base: OnceLock::new(),
                dev: dev_setup::DevOptions::default(),
            }),
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Sets the base URL of tracking links, such as `https://track.example.com`. Call once, before anything is
    /// accepted.
    pub fn set_tracking_base(&self, base_url: String) {
        // A second URL would belong to another listener: keep the first.
        let _ = self.inner.tracking_base.set(base_url);
    }

    fn tracking_base(&self) -> &str {
        self.inner.tracking_base.get_or_init(|| format!("https://track.{}", self.inner.hostname))
    }

    /// Clears all caches of stored settings after a change in this process. Other nodes see the change when their
    /// cached entries expire.
    fn forget_setup(&self) {
        self.inner.access.clear();
        self.inner.account_keys.clear();
        self.inner.verified_domains.clear();
        self.inner.maintenance.clear();
        self.inner.service_server.clear();
        self.inner.pools.clear();
        self.inner.bound_networks.clear();
        self.inner.templates.forget();
    }
}
