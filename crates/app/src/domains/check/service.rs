//! Names and addresses of this installation, on which the records of every sending domain depend.

use std::net::IpAddr;

use postroad_model::DomainName;

/// A source address of mail, and its HELO name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SendingAddress {
    pub address: IpAddr,
    pub helo: DomainName,
}

/// Names and addresses of this installation, as the operator configured them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceConfig {
    pub host: DomainName,
    pub sources: Vec<SendingAddress>,
    /// Whether the operating system may choose the source address. If so, all addresses of `host` in the DNS count as
    /// source addresses.
    pub uses_system_address: bool,
    /// Whether the bounce listener takes receivers' DMARC and TLS reports.
    pub takes_reports: bool,
}

/// Facts about this installation: records are generated from them and judged by them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub host: DomainName,
    /// Source addresses as receivers see them; never a private address.
    pub sources: Vec<SendingAddress>,
    /// Private source addresses whose HELO name has no public address: the address that receivers see is unknown.
    pub private_sources: Vec<SendingAddress>,
    /// Why the facts are currently unknown; `None` if they are known. While unknown, no SPF record is suggested or
    /// judged.
    pub unknown_reason: Option<String>,
    /// Whether `spf.<host>` exists, and passes for all our addresses but not for everybody. Only then may customers'
    /// SPF records include it.
    pub is_spf_name_usable: bool,
    pub takes_reports: bool,
}

impl Service {
    /// Facts from the configuration alone. `unknown_reason` is set unless the configuration names every source address
    /// and all these addresses are public.
    pub fn without_dns(config: &ServiceConfig) -> Self {
        let is_complete =
            !config.uses_system_address && config.sources.iter().all(|source| !is_private(source.address));
        let unknown_reason = (!is_complete).then(|| "the DNS was not asked".to_owned());
        Self::of_config(config, unknown_reason)
    }

    /// Facts to use when the look-ups failed.
    pub fn unknown(config: &ServiceConfig, reason: String) -> Self {
        Self::of_config(config, Some(reason))
    }

    fn of_config(config: &ServiceConfig, unknown_reason: Option<String>) -> Self {
        let public = config.sources.iter().filter(|source| !is_private(source.address));
        Self {
            host: config.host.clone(),
            sources: public.cloned().collect(),
            private_sources: Vec::new(),
            unknown_reason,
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

    /// Where receivers may send DMARC reports; `None` if the bounce listener takes no reports.
    pub fn dmarc_reports_address(&self) -> Option<String> {
        self.takes_reports.then(|| format!("dmarc-reports@{}", self.return_path_name()))
    }

    pub fn tls_reports_address(&self) -> Option<String> {
        self.takes_reports.then(|| format!("tls-reports@{}", self.return_path_name()))
    }

    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.sources.iter().map(|source| source.address)
    }

    /// SPF terms that allow our addresses: the include of `spf.<host>` if usable, else the addresses themselves. Empty
    /// if the addresses are not known.
    pub fn spf_terms(&self) -> Vec<String> {
        if self.is_spf_name_usable && self.unknown_reason.is_none() {
            return vec![format!("include:{}", self.spf_name())];
        }
        self.spf_address_terms()
    }

    /// SPF terms with plain addresses, which cost the evaluating receiver no DNS lookup. Empty if the addresses are not
    /// known.
    pub fn spf_address_terms(&self) -> Vec<String> {
        if self.unknown_reason.is_some() {
            return Vec::new();
        }
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

/// Whether the address is private, so that receivers see another, translated address (RFC 1918, RFC 6598, RFC 4193).
pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_private() || (first == 100 && (64..128).contains(&second))
        }
        IpAddr::V6(address) => address.is_unique_local(),
    }
}
