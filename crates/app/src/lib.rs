//! What the product can do, one function per thing. Doors (HTTP and SMTP, later the portal) translate and call
//! these; decisions are made here. Nothing here knows HTTP, HTML or sockets.

pub mod admin;
pub mod analytics;
mod authenticate;
mod bad_keys;
mod dev_setup;
pub mod domains;
mod feed;
mod find_message;
mod housekeeping;
mod installation;
mod log_in;
mod maintenance;
mod names;
mod refusal;
mod retention;
mod returns;
mod secrets;
pub mod send;
mod server_settings;
pub mod suppressions;
pub mod tracking_events;
mod ttl_cache;
mod webhook_key;
mod webhooks;

use std::sync::{Arc, OnceLock};

use postroad_model::{Clock, DomainName, Limits, ServerId};
use postroad_store::{CredentialAccess, KeyHash, SendingDomain, Store};

pub use authenticate::{AuthFailure, Caller, Peer};
pub use dev_setup::DevSetup;
pub use feed::{FeedRequest, FeedStart};
pub use find_message::{FoundMessage, LookupError, Wanted, view_message};
pub use housekeeping::Housekeeping;
pub use installation::Installation;
pub use log_in::{LoginFailure, Submitter};
pub use postroad_mail::{AttachmentView, MessageView};
pub use refusal::{AddressList, FieldProblem, Refusal};
pub use retention::{Retention, RetentionTask};
pub use returns::{Destination, ReportProblem, ReturnAddress, ReturnDesk, ReturnRefusal, ReturnedMail};
pub use server_settings::GivenServerChange;
pub use webhooks::{EventFilter, ReplayRequest, WebhookChanges, WebhookDraft, WebhookRefusal, shown_events};

use send::UsablePool;

/// The domain of simulator recipients, unless the configuration names another.
pub const SIMULATOR_DOMAIN: &str = "sim.postroad.test";

/// Webhooks of one server, unless the configuration says otherwise.
const WEBHOOKS_PER_SERVER: usize = 50;

/// Days of the usual warm-up plan.
const WARM_UP_DAYS: u32 = 21;

/// What an operator sets about it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name this installation goes by.
    pub hostname: DomainName,
    pub limits: Limits,
    /// Where recipients are played instead of delivered to.
    pub simulator_domain: DomainName,
    /// Give new domains a second DKIM key, Ed25519.
    pub dkim_ed25519: bool,
    /// How long what is kept.
    pub retention: Retention,
    /// Webhooks of one server: each costs a row for every event it wants, in the transaction that accepts.
    pub webhooks_per_server: usize,
    /// Days of the warm-up plan of a new source address.
    pub warm_up_days: u32,
}

impl Settings {
    /// The usual ones.
    pub fn of(hostname: DomainName) -> Self {
        let simulator_domain = DomainName::parse(SIMULATOR_DOMAIN).expect("the constant is a domain name");
        Self {
            hostname,
            limits: Limits::default(),
            simulator_domain,
            dkim_ed25519: false,
            retention: Retention::default(),
            webhooks_per_server: WEBHOOKS_PER_SERVER,
            warm_up_days: WARM_UP_DAYS,
        }
    }
}

/// The long-lived parts of a running service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct App {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// What is durable.
    store: Store,
    /// Where "now" comes from.
    clock: Arc<dyn Clock>,
    /// What one request and one message may be at most.
    limits: Limits,
    /// The name this installation goes by: return paths and Message-IDs are made of it.
    hostname: DomainName,
    /// Recipients here are played, not delivered to (contract 3).
    simulator_domain: DomainName,
    /// Give new domains a second DKIM key.
    dkim_ed25519: bool,
    /// The pools a send may name, as read in the last moments.
    pools: ttl_cache::TtlCache<ServerId, Arc<[UsablePool]>>,
    /// Keys seen in the last moments, so that a request costs no read.
    access: ttl_cache::TtlCache<KeyHash, CredentialAccess>,
    /// Domains found verified in the last moments.
    verified: ttl_cache::TtlCache<(ServerId, DomainName), SendingDomain>,
    /// Where tracking links lead, once it is known where we listen.
    tracking_base: OnceLock<String>,
    /// Whether maintenance is on, as read in the last moments.
    maintenance: ttl_cache::TtlCache<(), bool>,
    /// Networks that credentials are bound to, as read in the last moments.
    bound_networks: ttl_cache::TtlCache<(), Vec<log_in::BoundNetwork>>,
    /// Addresses that come with keys that are none.
    bad_keys: bad_keys::BadKeys,
    /// Idempotency keys that requests are just working with.
    in_progress: send::InProgress,
    /// When credentials were used, until the next housekeeping writes it down.
    used: housekeeping::Used,
    /// How long what is kept.
    retention: Retention,
    webhooks_per_server: usize,
    /// After so many days of its plan an address is warm.
    warm_up_days: u32,
    /// Places for questions about counters, which may hold many rows.
    analytics_reads: analytics::Reads,
    /// Calls that wait for events.
    waiting: feed::Waiting,
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
            warm_up_days,
        } = settings;
        let analytics_reads = analytics::Reads::with_readers(store.long_reads_max());
        Self {
            inner: Arc::new(Inner {
                store,
                clock,
                limits,
                hostname,
                simulator_domain,
                dkim_ed25519,
                pools: ttl_cache::TtlCache::default(),
                access: ttl_cache::TtlCache::default(),
                verified: ttl_cache::TtlCache::default(),
                tracking_base: OnceLock::new(),
                maintenance: ttl_cache::TtlCache::default(),
                bound_networks: ttl_cache::TtlCache::default(),
                bad_keys: bad_keys::BadKeys::default(),
                in_progress: send::InProgress::default(),
                used: housekeeping::Used::default(),
                retention,
                webhooks_per_server,
                warm_up_days,
                analytics_reads,
                waiting: feed::Waiting::default(),
            }),
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Where tracking links lead from now on: `https://track.example.com`. Said once, before anything is accepted.
    pub fn set_tracking_base(&self, base_url: String) {
        // A second one would be another listener's: the first stays.
        let _ = self.inner.tracking_base.set(base_url);
    }

    fn tracking_base(&self) -> &str {
        self.inner.tracking_base.get_or_init(|| format!("https://track.{}", self.inner.hostname))
    }

    /// Forgets what was read of the set-up: after a change of it in this process. Other nodes see the change when
    /// their memory of it has run out.
    fn forget_setup(&self) {
        self.inner.access.clear();
        self.inner.verified.clear();
        self.inner.maintenance.clear();
        self.inner.pools.clear();
        self.inner.bound_networks.clear();
    }
}
