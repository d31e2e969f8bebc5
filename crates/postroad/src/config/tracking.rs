//! Section `[tracking]`.

use std::path::PathBuf;

use anyhow::Context;
use ipnet::IpNet;
use postroad_model::DomainName;
use postroad_net::client_tls::ClientTls;
use postroad_net::dns::{Dns, DnsSettings};
use postroad_net::guarded_http::{GuardedHttp, GuardedHttpSettings};

use super::Config;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tracking {
    /// Base URL without a trailing slash; `None` for `https://track.<hostname>`, or in `postroad dev` for the
    /// service's own URL.
    pub(crate) base_url: Option<String>,
    pub(crate) allow: Vec<IpNet>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) host_port: u16,
}

impl Config {
    /// HTTP client that checks the certificates of customers' tracking hosts.
    pub(crate) fn tracking_client(&self) -> anyhow::Result<GuardedHttp> {
        let tls = ClientTls::new(self.tracking.ca_file.as_deref()).context("`tracking.ca_file`")?;
        let allowed = self.tracking.allow.clone();
        // No idle connections are kept: a certificate is checked only when a connection begins.
        let settings = GuardedHttpSettings { allowed, idle_max: 0, ..GuardedHttpSettings::default() };
        // DNS answers are not cached, as in checks of DNS records: a corrected record must be seen at once.
        let dns = DnsSettings { nameservers: self.dns.nameservers.clone(), ..DnsSettings::default() };
        let dns = Dns::for_checks(&dns).context("`dns.nameservers`")?;
        Ok(GuardedHttp::new(dns, tls.verified(), settings))
    }

    /// Base URL of tracking links, unless a domain has its own host name.
    pub(crate) fn tracking_base(&self) -> String {
        self.tracking.base_url.clone().unwrap_or_else(|| format!("https://track.{}", self.hostname))
    }
}

/// Scheme, host and optionally a port; a path is refused. The empty text means "the default" (`None`).
pub(super) fn parse_base(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let plain = text.strip_suffix('/').unwrap_or(text);
    let authority =
        plain.strip_prefix("https://").or_else(|| plain.strip_prefix("http://")).unwrap_or_default();
    let host = base_host(plain);
    let is_host = DomainName::parse(host).is_ok()
        || host == "localhost"
        || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    let port = authority[authority.len().min(host.len())..].strip_prefix(':');
    let is_rest_a_port_or_empty = authority == host || port.is_some_and(|port| port.parse::<u16>().is_ok());
    if is_host && is_rest_a_port_or_empty {
        return Ok(Some(plain.to_owned()));
    }
    Err(format!("{text:?} is not an address for links; write one like \"https://track.example.com\""))
}

/// The host name of a base URL, without its port.
pub(crate) fn base_host(base_url: &str) -> &str {
    let authority = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_a_scheme_and_a_host() {
        for (text, host) in [
            ("https://track.example.com", "track.example.com"),
            ("https://track.example.com/", "track.example.com"),
            ("http://127.0.0.1:8025", "127.0.0.1"),
            ("http://localhost:1", "localhost"),
            ("https://[::1]:8443", "[::1]"),
        ] {
            let base = parse_base(text).unwrap().unwrap();
            assert_eq!((base.as_str(), base_host(&base)), (text.trim_end_matches('/'), host));
        }
        assert_eq!(parse_base(""), Ok(None));
        for bad in [
            "track.example.com",
            "ftp://a.example",
            "https://",
            "https://a.example/x",
            "https://a.example:x",
            "https://a b.example",
        ] {
            assert!(parse_base(bad).is_err(), "{bad}");
        }
    }
}
