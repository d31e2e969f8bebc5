//! Mail hosts of a domain in order of preference (RFC 5321 5.1, RFC 7505).

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use hickory_resolver::proto::rr::{RData, RecordType};
use postroad_boxed_futures::boxed_futures;
use postroad_model::DomainName;

use super::question::{Answer, LookupFailure};
use super::{Dns, site};

const HOSTS_MAX: usize = 32;
const VALID_MIN: Duration = Duration::from_mins(1);
const VALID_MAX: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MxHost {
    /// Host name in lower case, without a trailing dot.
    pub name: String,
    pub preference: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MxPlan {
    /// Hosts, at least one, sorted by preference, then name; no duplicates.
    pub hosts: Vec<MxHost>,
    /// Whether the domain has no MX and is its own host.
    pub implicit: bool,
    /// Time for which the plan may be cached: from one minute to one hour.
    pub valid_for: Duration,
    /// Whether the hosts are secured by DNSSEC (only with a trusted resolver).
    pub is_secure: bool,
}

/// Why there are no mail hosts; each text is a sentence for the delivery record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MxFailure {
    #[error("The domain says that it accepts no mail (null MX).")]
    NullMx,
    #[error("The domain does not exist (NXDOMAIN).")]
    NoSuchDomain,
    #[error("The domain exists, but has neither a mail server (MX) nor an address (A, AAAA).")]
    NoMail,
    #[error("The domain's mail servers could not be looked up: {0}.")]
    Temporary(String),
    #[error("The domain's mail servers were not looked up: {}.", LookupFailure::Busy)]
    Busy,
}

impl MxFailure {
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Temporary(_) | Self::Busy)
    }
}

impl MxPlan {
    /// Readable name of the set of hosts: equal for equal sets, different for different ones.
    pub fn site_name(&self) -> String {
        site::name_of(self.hosts.iter().map(|host| host.name.as_str()))
    }
}

#[boxed_futures]
impl Dns {
    pub async fn mx_plan(&self, domain: &DomainName) -> Result<MxPlan, MxFailure> {
        match self.ask(domain.as_str(), RecordType::MX).await {
            Ok(answer) => plan_of(domain, &answer),
            Err(LookupFailure::NoSuchName) => Err(MxFailure::NoSuchDomain),
            Err(LookupFailure::NoData) => self.implicit_plan(domain).await,
            Err(LookupFailure::Temporary(reason)) => Err(MxFailure::Temporary(reason)),
            Err(LookupFailure::Busy) => Err(MxFailure::Busy),
        }
    }

    /// The plan of a domain without an MX: it is its own mail server, if it has an address (RFC 5321 5.1).
    async fn implicit_plan(&self, domain: &DomainName) -> Result<MxPlan, MxFailure> {
        // Look up both families whatever the settings: an address that this machine cannot use does not make
        // the domain bad.
        let (v6, v4) = self.ask_both_families(domain.as_str()).await;
        let ttls = [&v6, &v4].into_iter().filter_map(|answer| Some(answer.as_ref().ok()?.ttl));
        if let Some(ttl) = ttls.min() {
            let hosts = vec![MxHost { name: domain.as_str().to_owned(), preference: 0 }];
            // The denial of an MX comes from the zone of the addresses, so it is as secure as the addresses.
            let is_secure = [&v6, &v4].into_iter().flatten().all(|answer| answer.is_secure);
            let valid_for = ttl.clamp(VALID_MIN, VALID_MAX);
            return Ok(MxPlan { hosts, implicit: true, valid_for, is_secure });
        }
        let failure = [v6, v4].into_iter().find_map(|answer| match answer {
            Err(LookupFailure::Temporary(reason)) => Some(MxFailure::Temporary(reason)),
            Err(LookupFailure::Busy) => Some(MxFailure::Busy),
            _ => None,
        });
        Err(failure.unwrap_or(MxFailure::NoMail))
    }
}

fn plan_of(domain: &DomainName, answer: &Answer) -> Result<MxPlan, MxFailure> {
    let mut hosts: Vec<MxHost> = answer.records.iter().filter_map(host_of).collect();
    // A "." beside other hosts is an error of the domain's owner (RFC 7505 3), and cannot be dialled.
    hosts.retain(|host| !host.name.is_empty());
    if hosts.is_empty() {
        return Err(MxFailure::NullMx);
    }
    hosts.retain(|host| is_host_name(&host.name));
    if hosts.is_empty() {
        return Err(MxFailure::Temporary(format!("the MX records of {domain} hold no valid host name")));
    }
    if hosts.iter().any(|host| !is_literal(host)) {
        hosts.retain(|host| {
            if is_literal(host) {
                // RFC 5321 2.3.5 requires a name; such a mistake must not stop mail to the other hosts.
                tracing::debug!(%domain, host = host.name, "ignored an MX that is an address, not a name");
            }
            !is_literal(host)
        });
    }
    hosts.sort_by(|one, other| (one.preference, &one.name).cmp(&(other.preference, &other.name)));
    let mut seen = HashSet::new();
    hosts.retain(|host| seen.insert(host.name.clone()));
    hosts.truncate(HOSTS_MAX);
    let valid_for = answer.ttl.clamp(VALID_MIN, VALID_MAX);
    Ok(MxPlan { hosts, implicit: false, valid_for, is_secure: answer.is_secure })
}

fn host_of(record: &RData) -> Option<MxHost> {
    let RData::MX(mx) = record else { return None };
    let name = mx.exchange.to_lowercase().to_ascii();
    Some(MxHost { name: name.trim_end_matches('.').to_owned(), preference: mx.preference })
}

/// Whether a name has only lower-case letters, digits, dots, hyphens and underscores (which some domains use). `site`
/// relies on this.
fn is_host_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte))
}

fn is_literal(host: &MxHost) -> bool {
    host.name.parse::<IpAddr>().is_ok()
}
