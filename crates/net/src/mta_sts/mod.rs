//! MTA-STS (RFC 8461): domains that require verified TLS to the hosts they name.
//!
//! On failure a known policy stays in force until it expires, whatever the DNS or the web server say: otherwise
//! an attacker who breaks them could switch it off. A domain without a policy is delivered to without one (RFC
//! 8461 5.1).

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
use postroad_model::{DomainName, Timestamp};

pub use policy::{Mode, Policy, PolicyError};

use crate::client_tls::ClientTls;
use crate::dns::Dns;
use crate::single_flight::SingleFlight;
use cache::PolicyCache;
use fetch::Fetcher;
use file::{PolicyFile, Stored};

#[derive(Debug, Clone)]
pub struct MtaStsSettings {
    /// Port of the policy hosts: 443, except in tests.
    pub port: u16,
    /// Whether policies may come from addresses that are not public.
    pub allow_private: bool,
    /// Time for one fetch, from the host's addresses to the last byte.
    pub fetch_timeout: Duration,
    /// Number of domains; the least recently used is dropped first.
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
    /// No policy, or none that could be found.
    None,
    /// No requirement yet, but the domain wants reports of what would have failed.
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
    flights: SingleFlight<DomainName, StsVerdict>,
}

#[boxed_futures]
impl MtaSts {
    /// Loads the policies of an earlier process, if there is a file.
    pub fn new(dns: Dns, tls: &ClientTls, settings: &MtaStsSettings) -> Self {
        let mut policies = PolicyCache::new(settings.policies_max);
        let file = settings.file.as_ref().map(|path| {
            let (file, known) = PolicyFile::open(path, settings.policies_max);
            for Stored { domain, id, policy, fetched_at } in known {
                policies.keep(&domain, id, policy, fetched_at);
            }
            file
        });
        let inner = Inner {
            fetcher: Fetcher::new(dns.clone(), tls.verified(), settings),
            dns,
            policies: Mutex::new(policies),
            file,
            flights: SingleFlight::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub async fn policy(&self, domain: &DomainName, now: Timestamp) -> StsVerdict {
        let inner = Arc::clone(&self.inner);
        let work = || {
            let domain = domain.clone();
            async move { inner.find(&domain, now).await }
        };
        let found = self.inner.flights.join(domain.clone(), work).await;
        found.unwrap_or_else(|| self.inner.known(domain, now))
    }
}

impl Inner {
    async fn find(self: &Arc<Self>, domain: &DomainName, now: Timestamp) -> StsVerdict {
        let texts = self.dns.texts(&format!("_mta-sts.{domain}")).await.unwrap_or_default();
        let Some(id) = record::id_in(&texts) else {
            // RFC 8461 3.1: a missing record does not end a policy.
            return self.known(domain, now);
        };
        if !self.policies().wants_fetch(domain, &id, now) {
            return self.known(domain, now);
        }
        match self.fetcher.fetch(domain).await {
            Ok(policy) => {
                self.policies().keep(domain, id.clone(), policy.clone(), now);
                self.store(Stored { domain: domain.clone(), id, policy, fetched_at: now }).await;
            }
            Err(error) => {
                tracing::info!(%domain, %error, "fetching an MTA-STS policy failed");
                self.policies().note_failure(domain, id, now);
            }
        }
        self.known(domain, now)
    }

    /// Stores the policy before it is used: it stays enforced after a crash.
    async fn store(self: &Arc<Self>, stored: Stored) {
        if self.file.is_none() {
            return;
        }
        let inner = Arc::clone(self);
        let write = move || {
            if let Some(file) = &inner.file {
                file.add(&stored, || inner.policies().all());
            }
        };
        // It ends early only if the process does.
        let _ = tokio::task::spawn_blocking(write).await;
    }

    fn known(&self, domain: &DomainName, now: Timestamp) -> StsVerdict {
        self.policies().policy(domain, now).map_or(StsVerdict::None, |policy| StsVerdict::of(&policy))
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
