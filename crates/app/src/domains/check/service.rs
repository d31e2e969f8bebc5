//! What the records of every sending domain depend on: the names and addresses of this installation.

use std::net::IpAddr;

use postroad_model::DomainName;

/// An address that mail leaves from, and the name it greets with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendingAddress {
    pub address: IpAddr,
    pub helo: DomainName,
}

/// What an operator has set up.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    pub host: DomainName,
    /// Empty if the machine chooses: then the addresses of `host` in the DNS count.
    pub sources: Vec<SendingAddress>,
    /// Whether the bounce listener takes reports about domains.
    pub takes_reports: bool,
}

/// The facts about this installation that records are made of and judged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub host: DomainName,
    pub sources: Vec<SendingAddress>,
    /// Whether `spf.<host>` exists and passes for all our addresses. Otherwise an include of it would break the SPF of
    /// whoever publishes it.
    pub is_spf_name_usable: bool,
    pub takes_reports: bool,
}

impl Service {
    /// What the configuration says by itself.
    pub fn without_dns(config: &ServiceConfig) -> Self {
        Self {
            host: config.host.clone(),
            sources: config.sources.clone(),
            is_spf_name_usable: false,
            takes_reports: config.takes_reports,
        }
    }

    pub fn spf_name(&self) -> String {
        format!("spf.{}", self.host)
    }

    pub fn return_path_name(&self) -> String {
        format!("rp.{}", self.host)
    }

    pub fn tracking_name(&self) -> String {
        format!("track.{}", self.host)
    }

    /// Where receivers may send DMARC reports.
    pub fn dmarc_reports_address(&self) -> Option<String> {
        self.takes_reports.then(|| format!("dmarc-reports@{}", self.return_path_name()))
    }

    pub fn tls_reports_address(&self) -> Option<String> {
        self.takes_reports.then(|| format!("tls-reports@{}", self.return_path_name()))
    }

    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.sources.iter().map(|source| source.address)
    }

    /// SPF terms that allow our addresses: the include if it is safe, else the addresses themselves.
    pub fn spf_terms(&self) -> Vec<String> {
        if self.is_spf_name_usable {
            return vec![format!("include:{}", self.spf_name())];
        }
        self.spf_address_terms()
    }

    /// Cost no DNS lookup of whoever evaluates them.
    pub fn spf_address_terms(&self) -> Vec<String> {
        let mut addresses: Vec<IpAddr> = self.addresses().collect();
        addresses.sort_unstable();
        addresses.dedup();
        let term = |address: &IpAddr| match address {
            IpAddr::V4(address) => format!("ip4:{address}"),
            IpAddr::V6(address) => format!("ip6:{address}"),
        };
        addresses.iter().map(term).collect()
    }
}
