//! Section `[webhooks]`, the webhook worker's settings made from it, and the HTTP clients for webhooks and pictures.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use ipnet::{IpNet, Ipv4Net};
use postroad_events::{RetrySettings, WebhookSettings};
use postroad_net::client_tls::ClientTls;
use postroad_net::dns::{Dns, DnsSettings};
use postroad_net::guarded_http::{GuardedHttp, GuardedHttpSettings};

use super::Config;

/// Timeouts for pictures are short, because somebody waits for the page.
const PICTURE_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const PICTURE_TIMEOUT: Duration = Duration::from_secs(6);
const PICTURE_BYTES_MAX: usize = 2 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Webhooks {
    pub(crate) allow: Vec<IpNet>,
    pub(crate) concurrency: usize,
    pub(crate) per_server: usize,
    pub(crate) retry_schedule: Vec<Duration>,
    pub(crate) disable_after: Duration,
    pub(crate) ca_file: Option<PathBuf>,
}

impl Config {
    pub(crate) fn webhook_settings(&self) -> WebhookSettings {
        WebhookSettings {
            concurrency_max: self.webhooks.concurrency,
            retry: RetrySettings {
                schedule: self.webhooks.retry_schedule.clone(),
                disable_after: self.webhooks.disable_after,
            },
        }
    }

    /// HTTP client that posts webhooks to customers' URLs; `dev` allows loopback addresses.
    pub(crate) fn webhook_client(&self, dev: bool) -> anyhow::Result<GuardedHttp> {
        self.guarded_client(dev, GuardedHttpSettings::default())
    }

    /// HTTP client for pictures in mail that somebody looks at in the portal. `webhooks.allow` and `webhooks.ca_file`
    /// apply to this client too.
    pub(crate) fn picture_client(&self, dev: bool) -> anyhow::Result<GuardedHttp> {
        let settings = GuardedHttpSettings {
            connect_timeout: PICTURE_CONNECT_TIMEOUT,
            exchange_timeout: PICTURE_TIMEOUT,
            answer_bytes_max: PICTURE_BYTES_MAX,
            idle_max: 0,
            ..GuardedHttpSettings::default()
        };
        self.guarded_client(dev, settings)
    }

    fn guarded_client(&self, dev: bool, mut settings: GuardedHttpSettings) -> anyhow::Result<GuardedHttp> {
        settings.allowed.clone_from(&self.webhooks.allow);
        if dev {
            let loopback = Ipv4Net::new(Ipv4Addr::LOCALHOST, 8).expect("8 is a prefix length of IPv4");
            settings
                .allowed
                .extend([loopback.into(), IpNet::from(std::net::IpAddr::from(Ipv6Addr::LOCALHOST))]);
        }
        let tls = ClientTls::new(self.webhooks.ca_file.as_deref()).context("`webhooks.ca_file`")?;
        Ok(GuardedHttp::new(self.dns()?, tls.verified(), settings))
    }

    pub(crate) fn dns(&self) -> anyhow::Result<Dns> {
        Ok(Dns::new(&DnsSettings { nameservers: self.dns.nameservers.clone(), ..DnsSettings::default() })?)
    }
}
