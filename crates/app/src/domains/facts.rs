//! Facts that the records of domains depend on: the installation's host name and source addresses.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use postroad_boxed_futures::boxed_futures;
use postroad_model::DomainName;
use postroad_store::{AuditSubject, DomainOwner, Source, SourceScope, StoreError};
use tokio::time::{Instant, timeout};

use super::check::{SendingAddress, Service, ServiceConfig};
use crate::App;
use crate::access::Operation;
use crate::accounts::Requester;

/// DNS answers about this installation are looked up again after this long.
const CACHE_TIME: Duration = Duration::from_secs(30);
/// Timeout of the look-ups about this installation.
const LOOK_UP_TIME_MAX: Duration = Duration::from_secs(5);
/// Maximum number of cached entries, one for each set of source addresses. There are about as many sets as pools.
const CACHE_ENTRIES_MAX: usize = 1_000;

/// Setting with the host name by which all nodes judge records, whatever their own names are.
const INSTALLATION_HOST: &str = "installation_host";

/// Cached facts, each with the time of its look-up, by the configuration they were looked up for.
#[derive(Debug, Default)]
pub(super) struct FactsCache {
    facts: Mutex<HashMap<ServiceConfig, (Instant, Service)>>,
}

impl FactsCache {
    fn find(&self, config: &ServiceConfig) -> Option<(Instant, Service)> {
        self.facts.lock().get(config).cloned()
    }

    fn put(&self, config: ServiceConfig, service: Service) {
        let mut facts = self.facts.lock();
        if facts.len() >= CACHE_ENTRIES_MAX {
            facts.clear();
        }
        facts.insert(config, (Instant::now(), service));
    }
}

#[boxed_futures]
impl App {
    /// Facts for the domains of an owner; from the DNS, cached briefly.
    pub(crate) async fn service_facts(&self, owner: DomainOwner) -> Service {
        let scope = match owner {
            DomainOwner::Server(id) => SourceScope::Server(id),
            DomainOwner::Account(id) => SourceScope::Account(id),
        };
        self.facts_for(scope).await
    }

    /// Facts for the installation itself, with all its source addresses.
    pub(super) async fn installation_facts(&self) -> Service {
        self.facts_for(SourceScope::All).await
    }

    async fn facts_for(&self, scope: SourceScope) -> Service {
        let (config, trouble) = self.service_config(scope).await;
        if let Some(error) = trouble {
            tracing::warn!(%error, "reading the installation's addresses failed; SPF records are not judged until it works");
            return Service::unknown(&config, unknown_reason());
        }
        let Some(checker) = self.checker() else { return Service::without_dns(&config) };
        let known = checker.facts.find(&config);
        if let Some((read_at, service)) = &known
            && read_at.elapsed() < CACHE_TIME
        {
            return service.clone();
        }
        let found = timeout(LOOK_UP_TIME_MAX, Service::look_up(&checker.dns, &config)).await.ok();
        if let Some(service) = found.as_ref().filter(|service| service.unknown_reason.is_none()) {
            checker.facts.put(config, service.clone());
            return service.clone();
        }
        // Keep using the last good facts. A failure is not cached: the next call looks the facts up again.
        let known = known.map(|(_, service)| service).or(found);
        known.unwrap_or_else(|| Service::unknown(&config, unknown_reason()))
    }

    /// The configuration. If the store does not answer, returns the error, and a configuration with only this node's
    /// name.
    async fn service_config(&self, scope: SourceScope) -> (ServiceConfig, Option<StoreError>) {
        let read = async {
            let host = self.installation_host().await?;
            Ok((host, self.inner.store.list_sources_of(scope).await?))
        };
        let takes_reports = self.checker().is_some_and(|checker| checker.takes_reports);
        let address = |source: Source| SendingAddress { address: source.address, helo: source.helo };
        match read.await {
            Ok((host, found)) => {
                let sources = found.sources.into_iter().map(address).collect();
                (
                    ServiceConfig {
                        host,
                        sources,
                        uses_system_address: found.uses_system_address,
                        takes_reports,
                    },
                    None,
                )
            }
            Err(error) => {
                let host = self.inner.hostname.clone();
                (
                    ServiceConfig { host, sources: Vec::new(), uses_system_address: true, takes_reports },
                    Some(error),
                )
            }
        }
    }

    /// The host name that customers' records point to, which is the same on all nodes.
    pub(crate) async fn installation_host(&self) -> Result<DomainName, StoreError> {
        let stored = self.inner.store.find_setting(INSTALLATION_HOST).await?;
        let stored = stored.and_then(|text| DomainName::parse(&text).ok());
        Ok(stored.unwrap_or_else(|| self.inner.hostname.clone()))
    }

    /// Sets the host name of the installation at start. A single node sets its own name. With several nodes the name
    /// of the first node stays, and a node with another name only logs a warning.
    pub async fn set_installation_host_at_start(&self, is_single_node: bool) -> Result<(), StoreError> {
        let own = self.inner.hostname.to_string();
        if is_single_node {
            return self.inner.store.set_setting(INSTALLATION_HOST, Some(own)).await;
        }
        let stored = self.inner.store.find_or_insert_setting(INSTALLATION_HOST, own.clone()).await?;
        if let Ok(host) = DomainName::parse(&stored) {
            // A node starts once, so the value is not set yet.
            let _ = self.inner.installation_host.set(host);
        }
        if stored != own {
            tracing::warn!(
                hostname = own,
                installation_host = stored,
                "hostname differs from the installation's; domain records are judged by the installation's \
                 name, which `postroad admin domain set-host` changes"
            );
        }
        Ok(())
    }

    /// The installation's host name as it was when this node started. Return paths and the installation's DKIM
    /// signatures, for example, use it.
    pub fn host(&self) -> &DomainName {
        self.inner.installation_host.get().unwrap_or(&self.inner.hostname)
    }

    /// Changes the host name that customers' records point to; for the operator at the command line.
    pub(crate) async fn set_installation_host(&self, host: &DomainName) -> Result<(), StoreError> {
        let subject = AuditSubject::Setting(INSTALLATION_HOST);
        let store = self.audited_store(&Requester::command_line(), Operation::InstallationSetHost, subject);
        store.set_setting(INSTALLATION_HOST, Some(host.to_string())).await
    }
}

fn unknown_reason() -> String {
    "the installation's own addresses could not be determined".to_owned()
}
