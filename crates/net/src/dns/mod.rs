//! DNS client: mail hosts, host addresses, TLSA and TXT records; and published records for checks of domains.
//!
//! It distinguishes negative answers (no such name, no such record) from failures (SERVFAIL, timeouts,
//! malformed answers), which never count as an answer about the name. During a failure the last answers about
//! mail hosts and addresses are used for up to a day.

mod addresses;
mod authentic;
mod last_known;
mod lookup_permits;
mod mx;
mod organisational_domain;
mod question;
mod records;
mod site;
mod tlsa;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::Resolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use postroad_model::ServerId;

pub use addresses::AddressFailure;
pub use hickory_resolver::proto::rr::RecordType;
pub use lookup_permits::DNS_SOCKETS_MAX;
pub use mx::{MxFailure, MxHost, MxPlan};
pub use organisational_domain::organisational_domain;
pub use question::LookupFailure;
pub use records::{RecordData, TEXT_BYTES_MAX};
pub use tlsa::{HostTlsa, TlsaAnswer, TlsaRecord};

use crate::fair_permits::Tenant;
use crate::shared_lookup::SharedLookup;
use authentic::AdBitProvider;
use last_known::LastKnown;
use lookup_permits::{LookupPermits, Question};
use question::Outcome;

/// Longest caching, whatever the zone's TTL: a repaired domain must not stay broken here for a day.
const CACHE_TTL_MAX: Duration = Duration::from_hours(1);

#[derive(Debug, Clone)]
pub struct DnsSettings {
    /// Name servers to ask; empty for the system's.
    pub nameservers: Vec<SocketAddr>,
    /// Timeout of one attempt.
    pub timeout: Duration,
    /// Number of attempts, including the first.
    pub attempts: usize,
    pub cache_entries_max: u64,
    /// Whether `addresses` returns IPv6 addresses.
    pub ipv6: bool,
    pub dnssec: DnssecTrust,
}

/// Which name servers are trusted to have validated an answer by DNSSEC (the AD bit).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DnssecTrust {
    /// No name server is trusted, so no answer counts as secure.
    #[default]
    Off,
    /// Name servers on this machine.
    Loopback,
    /// All name servers, wherever they are: the network to them must be secure.
    Always,
}

impl Default for DnsSettings {
    fn default() -> Self {
        Self {
            nameservers: Vec::new(),
            timeout: Duration::from_secs(4),
            attempts: 3,
            cache_entries_max: 32_768,
            ipv6: true,
            dnssec: DnssecTrust::Off,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DnsSetupError {
    #[error("cannot use the system's DNS configuration: {source}; set `[dns] nameservers`")]
    Unusable { source: NetError },
    #[error(
        "`[dns] dnssec` is \"loopback\", and the name server {0} is not on this machine; run a validating resolver here \
         and name it in `[dns] nameservers`, or say \"always\" if nobody can forge what it answers"
    )]
    NotLoopback(IpAddr),
}

/// Clones share caches and look-ups in progress.
#[derive(Clone)]
pub struct Dns {
    inner: Arc<Inner>,
    tenant: Tenant,
}

struct Inner {
    resolver: Resolver<AdBitProvider>,
    /// Look-ups in progress, shared by callers with the same question for the same sending server. Different sending
    /// servers share no look-up, because a look-up waits for permits of its server. The resolver joins equal queries
    /// of all servers, except one that starts after the answer came and before the answer is cached.
    lookups: SharedLookup<(Tenant, Question), Outcome>,
    lookup_permits: LookupPermits,
    /// `None` if answers are not cached at all.
    last_known: Option<LastKnown>,
    /// Timeout of one look-up with its retries and aliases, and of the wait for a permit before it.
    lookup_timeout: Duration,
    ipv6: bool,
    /// Whether the AD bit of answers counts.
    trusts_ad: bool,
}

impl Dns {
    pub fn new(settings: &DnsSettings) -> Result<Self, DnsSetupError> {
        let config = if settings.nameservers.is_empty() {
            hickory_resolver::system_conf::read_system_conf()
                .map_err(|source| DnsSetupError::Unusable { source })?
                .0
        } else {
            ResolverConfig::from_name_servers(settings.nameservers.iter().map(name_server).collect())
        };
        let is_remote = |server: &&NameServerConfig| !server.ip.is_loopback();
        if settings.dnssec == DnssecTrust::Loopback
            && let Some(server) = config.name_servers().iter().find(is_remote)
        {
            return Err(DnsSetupError::NotLoopback(server.ip));
        }
        let trusts_ad = settings.dnssec != DnssecTrust::Off;
        let resolver = Resolver::builder_with_config(config, AdBitProvider::new(trusts_ad))
            .with_options(options(settings))
            .build()
            .map_err(|source| DnsSetupError::Unusable { source })?;
        let inner = Inner {
            resolver,
            lookups: SharedLookup::default(),
            lookup_permits: LookupPermits::default(),
            last_known: (settings.cache_entries_max > 0).then(LastKnown::default),
            lookup_timeout: settings.timeout
                * u32::try_from(settings.attempts.max(1)).unwrap_or(u32::MAX)
                * 2,
            ipv6: settings.ipv6,
            trusts_ad,
        };
        Ok(Self { inner: Arc::new(inner), tenant: None })
    }

    /// Returns a client whose look-ups count towards the share of a sending server: slow answers for one server do not
    /// delay look-ups for another server.
    #[must_use]
    pub fn for_server(&self, server: ServerId) -> Self {
        Self { inner: Arc::clone(&self.inner), tenant: Some(server) }
    }

    /// Whether look-ups for this client's sending server have to wait for permits.
    pub(crate) fn is_contended(&self) -> bool {
        self.inner.lookup_permits.is_contended(self.tenant)
    }
}

impl fmt::Debug for Dns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dns").finish_non_exhaustive()
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut connections {
        connection.port = address.port();
    }
    NameServerConfig::new(address.ip(), true, connections)
}

fn options(settings: &DnsSettings) -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.timeout = settings.timeout;
    // hickory counts the attempts after the first.
    options.attempts = settings.attempts.saturating_sub(1);
    options.cache_size = settings.cache_entries_max;
    options.positive_max_ttl = Some(CACHE_TTL_MAX);
    options.negative_max_ttl = Some(CACHE_TTL_MAX);
    // One query on the wire; the next attempt asks the next server.
    options.num_concurrent_reqs = 1;
    options.max_active_requests = DNS_SOCKETS_MAX;
    // The DNS alone decides where mail goes: /etc/hosts has no MX records, and would hide failures of the DNS.
    options.use_hosts_file = ResolveHosts::Never;
    options
}
