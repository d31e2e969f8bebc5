//! Section `[domains]`, and how the records of domains are looked up.

use std::net::SocketAddr;

use anyhow::Context;
use postroad_app::domains::{CheckIntervals, DomainChecker};
use postroad_net::dns::{Dns, DnsSettings};
use postroad_net::guarded_http::GuardedHttp;

use super::Config;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Domains {
    pub(crate) per_server: usize,
    pub(crate) checks: CheckIntervals,
}

impl Config {
    pub(crate) fn domain_checker(&self) -> anyhow::Result<DomainChecker> {
        let http = self.tracking_client()?;
        self.checker(self.dns.nameservers.clone(), Some(http))
    }

    /// Checker of `dev`: asks the name server `local` unless others are configured. Tracking links of `dev` lead to
    /// the service's own URL, so no tracking host is checked for its certificate.
    pub(crate) fn dev_domain_checker(&self, local: SocketAddr) -> anyhow::Result<DomainChecker> {
        let configured = &self.dns.nameservers;
        self.checker(if configured.is_empty() { vec![local] } else { configured.clone() }, None)
    }

    fn checker(
        &self,
        nameservers: Vec<SocketAddr>,
        http: Option<GuardedHttp>,
    ) -> anyhow::Result<DomainChecker> {
        let settings = DnsSettings { nameservers, ..DnsSettings::default() };
        let dns = Dns::for_checks(&settings).context("`dns.nameservers`")?;
        let checker = DomainChecker::new(dns, http, self.smtp.bounce_listen.is_some());
        Ok(checker.with_tracking_port(self.tracking.host_port))
    }
}
