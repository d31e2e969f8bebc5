//! MTA-STS (RFC 8461): domains that require verified TLS to the hosts they name.
//!
//! On failure a known policy stays in force until it expires, whatever the DNS or the web server say: otherwise
//! an attacker who breaks either could switch the policy off. Mail to a domain without a policy is delivered without
//! these requirements (RFC 8461 5.1).

mod cache;
mod fetch;
mod file;
mod policy;
mod record;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainName, ServerId, Timestamp};

pub use policy::{Mode, Policy, PolicyError};

use crate::client_tls::ClientTls;
use crate::dns::{Dns, LookupFailure};
use crate::shared_lookup::SharedLookup;
use cache::PolicyCache;
use fetch::{FetchError, Fetcher};
use file::{PolicyFile, StoredPolicy};

/// Longest wait for the record that announces a policy; short, because mail waits meanwhile.
const RECORD_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for the record if a policy is known, which stays in force, or if look-ups have to wait for permits.
const RECORD_WAIT_SHORT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct MtaStsSettings {
    /// Port of the policy hosts: 443, except in tests.
    pub port: u16,
    /// Whether policies may come from addresses that are not public.
    pub allow_private: bool,
    /// Time for one fetch, from the host's addresses to the last byte, without the wait for a permit.
    pub fetch_timeout: Duration,
    /// Maximum number of policies that are kept; the least recently used is dropped first.
    pub policies_max: usize,
    /// File that keeps policies over a restart.
    pub file: Option<PathBuf>,
}

impl Default for MtaStsSettings {
    fn default() -> Self {
        Self {
            port: 443,
            allow_private: false,
            fetch_timeout: Duration::from_secs(10),
            policies_max: 10_000,
            file: None,
        }
    }
}

/// Requirement of a domain on its senders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StsVerdict {
    /// No policy, none that could be found, or one of mode `none`.
    None,
    /// Not known in time: the record's look-up has no answer yet, or too many look-ups or fetches wait. Ask again soon.
    Unknown,
    /// No requirement yet, but the domain wants reports of deliveries that would have failed.
    Testing(Arc<Policy>),
    /// Deliver only to a matching host over TLS with a verified certificate.
    Enforce(Arc<Policy>),
}

impl StsVerdict {
    fn of(policy: &Arc<Policy>) -> Self {
        match policy.mode {
            Mode::None => Self::None,
            Mode::Testing => Self::Testing(Arc::clone(policy)),
            Mode::Enforce => Self::Enforce(Arc::clone(policy)),
        }
    }
}

/// Result of looking up the record by which a domain announces its policy.
enum RecordLookup {
    Id(String),
    /// There is no valid record, or its look-up failed.
    Nothing,
    /// No answer yet, or the look-up was not made.
    Unanswered,
}

/// Clones share the policies.
#[derive(Clone)]
pub struct MtaSts {
    inner: Arc<Inner>,
}

struct Inner {
    dns: Dns,
    fetcher: Fetcher,
    policies: Mutex<PolicyCache>,
    file: Option<PolicyFile>,
    /// Look-ups in progress, shared by all servers, or by callers for one server.
    lookups: SharedLookup<(DomainName, Option<ServerId>), PolicyLookup>,
}

/// Result of a look-up.
#[derive(Clone)]
struct PolicyLookup {
    verdict: StsVerdict,
    /// The server whose permits the look-up used.
    server: ServerId,
    /// Whether the verdict is unknown while that server has no permits left.
    lacked_permits: bool,
}

#[boxed_futures]
impl MtaSts {
    /// Loads the policies of an earlier process, if there is a file.
    pub fn new(dns: Dns, tls: &ClientTls, settings: &MtaStsSettings) -> Self {
        let mut policies = PolicyCache::new(settings.policies_max);
        let file = settings.file.as_ref().map(|path| {
            let (file, known) = PolicyFile::open(path, settings.policies_max);
            for StoredPolicy { domain, id, policy, fetched_at } in known {
                policies.keep(&domain, id, policy, fetched_at);
            }
            file
        });
        let inner = Inner {
            fetcher: Fetcher::new(dns.clone(), tls.verified(), settings),
            dns,
            policies: Mutex::new(policies),
            file,
            lookups: SharedLookup::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The requirement of a domain. `server` is the server whose mail waits: look-ups of one server do not delay
    /// another's look-ups of other domains. If the call joined a look-up of another server, and that server had no free
    /// permits, the look-up is repeated with the permits of `server`.
    pub async fn policy(&self, domain: &DomainName, server: ServerId, now: Timestamp) -> StsVerdict {
        let mut found = self.join(domain, None, server, now).await;
        if found.lacked_permits && found.server != server {
            found = self.join(domain, Some(server), server, now).await;
        }
        found.verdict
    }

    /// Joins the look-up that is shared by all servers, or by callers for `only`. Begins one for `server` if there is
    /// none.
    async fn join(
        &self,
        domain: &DomainName,
        only: Option<ServerId>,
        server: ServerId,
        now: Timestamp,
    ) -> PolicyLookup {
        let inner = Arc::clone(&self.inner);
        let work = || {
            let domain = domain.clone();
            async move {
                let verdict = inner.look_up_verdict(&domain, server, now).await;
                let lacked_permits = verdict == StsVerdict::Unknown && inner.is_contended(server);
                PolicyLookup { verdict, server, lacked_permits }
            }
        };
        let found = self.inner.lookups.join((domain.clone(), only), work).await;
        let aborted = || {
            let verdict = self.inner.cached_verdict(domain, now);
            PolicyLookup { verdict, server, lacked_permits: false }
        };
        found.unwrap_or_else(aborted)
    }
}

impl Inner {
    async fn look_up_verdict(
        self: &Arc<Self>,
        domain: &DomainName,
        server: ServerId,
        now: Timestamp,
    ) -> StsVerdict {
        self.retry_storing(now).await;
        let id = match self.announced_id(domain, server, now).await {
            RecordLookup::Id(id) => id,
            // RFC 8461 3.1: a missing record does not end a policy.
            RecordLookup::Nothing => return self.cached_verdict(domain, now),
            RecordLookup::Unanswered => return self.cached_or_unknown(domain, now),
        };
        let wanted = self.policies().fetch_rank(domain, &id, now);
        let Some(rank) = wanted else { return self.cached_verdict(domain, now) };
        match self.fetcher.fetch(domain, server, rank).await {
            Ok(policy) => {
                self.policies().keep(domain, id.clone(), policy.clone(), now);
                self.store(StoredPolicy { domain: domain.clone(), id, policy, fetched_at: now }, now).await;
            }
            Err(error @ FetchError::Busy) => {
                tracing::info!(%domain, %error, "an MTA-STS policy was not fetched; a cached one stays in force");
                return self.cached_or_unknown(domain, now);
            }
            Err(error) => {
                tracing::info!(%domain, %error, "fetching an MTA-STS policy failed; a cached one stays in force");
                self.policies().note_failure(domain, id, now);
            }
        }
        self.cached_verdict(domain, now)
    }

    /// Whether further look-ups or fetches for this server have to wait for permits.
    fn is_contended(&self, server: ServerId) -> bool {
        self.dns.for_server(server).is_contended() || self.fetcher.is_contended(server)
    }

    /// Looks up the record. Without an answer in time, the look-up continues for later callers.
    async fn announced_id(&self, domain: &DomainName, server: ServerId, now: Timestamp) -> RecordLookup {
        let dns = self.dns.for_server(server);
        let is_known = self.policies().policy(domain, now).is_some();
        let wait = if is_known || dns.is_contended() { RECORD_WAIT_SHORT } else { RECORD_WAIT };
        let name = format!("_mta-sts.{domain}");
        match tokio::time::timeout(wait, dns.texts(&name)).await {
            Err(_) | Ok(Err(LookupFailure::Busy)) => RecordLookup::Unanswered,
            Ok(texts) => {
                record::id_in(&texts.unwrap_or_default()).map_or(RecordLookup::Nothing, RecordLookup::Id)
            }
        }
    }

    /// Stores the policy before its look-up ends, so that it stays enforced after a crash.
    async fn store(self: &Arc<Self>, stored: StoredPolicy, now: Timestamp) {
        if self.file.is_some() {
            self.write(move |file, all| file.add(&stored, now, all)).await;
        }
    }

    async fn retry_storing(self: &Arc<Self>, now: Timestamp) {
        if self.file.as_ref().is_some_and(|file| file.is_retry_due(now)) {
            self.write(move |file, all| file.retry(now, all)).await;
        }
    }

    /// Runs `work` on the file, on a thread that may block; its second argument lists all policies.
    async fn write(
        self: &Arc<Self>,
        work: impl FnOnce(&PolicyFile, &dyn Fn() -> Vec<StoredPolicy>) + Send + 'static,
    ) {
        let inner = Arc::clone(self);
        let write = move || {
            if let Some(file) = &inner.file {
                work(file, &|| inner.policies().all());
            }
        };
        // An error means that the write panicked, or that the runtime is shutting down.
        let _ = tokio::task::spawn_blocking(write).await;
    }

    fn cached_verdict(&self, domain: &DomainName, now: Timestamp) -> StsVerdict {
        self.policies().policy(domain, now).map_or(StsVerdict::None, |policy| StsVerdict::of(&policy))
    }

    /// The verdict of the cached policy, or `Unknown`: for use while it is not known whether the domain has a policy.
    fn cached_or_unknown(&self, domain: &DomainName, now: Timestamp) -> StsVerdict {
        match self.cached_verdict(domain, now) {
            StsVerdict::None => StsVerdict::Unknown,
            known => known,
        }
    }

    fn policies(&self) -> MutexGuard<'_, PolicyCache> {
        self.policies.lock()
    }
}

impl fmt::Debug for MtaSts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MtaSts").finish_non_exhaustive()
    }
}
