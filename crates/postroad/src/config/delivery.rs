//! Section `[delivery]`, and the engine's settings made from it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use postroad_delivery::{RetryPolicy, Settings, SmartHost, SmartHostTls, WarmUpPlan};
use postroad_model::{DomainName, SendRate};

use super::Config;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) smtp_port: u16,
    pub(crate) smarthost: Option<(String, u16)>,
    pub(crate) smarthost_tls: SmartHostTls,
    pub(crate) smarthost_username: String,
    pub(crate) smarthost_password: Secret,
    pub(crate) smarthost_connections: usize,
    pub(crate) smarthost_rate: Option<SendRate>,
    pub(crate) allow_private_destinations: bool,
    /// `None` for the default of the command (`serve` or `dev`).
    pub(crate) catch_all: Option<bool>,
    /// Empty for the default of the command.
    pub(crate) retry_schedule: Vec<Duration>,
    pub(crate) give_up_after: Duration,
    pub(crate) delay_notice_after: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) busy_greeting_timeout: Duration,
    pub(crate) reply_timeout: Duration,
    pub(crate) final_reply_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) connection_lifetime: Duration,
    pub(crate) connections_max: usize,
    pub(crate) drain_timeout: Duration,
    pub(crate) signing_threads: usize,
    pub(crate) fresh_bytes_max: usize,
    pub(crate) messages_max: usize,
    pub(crate) providers_file: Option<PathBuf>,
    pub(crate) warm_up_plan: Vec<u32>,
    /// `None` for the default of the command (`serve` or `dev`).
    pub(crate) simulator: Option<bool>,
    pub(crate) simulator_domain: DomainName,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) mta_sts_port: u16,
    pub(crate) ipv6: bool,
    pub(crate) dkim: bool,
    pub(crate) dkim_ed25519: bool,
}

/// A secret, which is printed as dots.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Delivery {
    /// Placeholder values, which the table of keys replaces.
    pub(super) fn unset() -> Self {
        Self {
            smtp_port: 0,
            smarthost: None,
            smarthost_tls: SmartHostTls::Opportunistic,
            smarthost_username: String::new(),
            smarthost_password: Secret::default(),
            smarthost_connections: 0,
            smarthost_rate: None,
            allow_private_destinations: false,
            catch_all: None,
            retry_schedule: Vec::new(),
            give_up_after: Duration::ZERO,
            delay_notice_after: Duration::ZERO,
            connect_timeout: Duration::ZERO,
            busy_greeting_timeout: Duration::ZERO,
            reply_timeout: Duration::ZERO,
            final_reply_timeout: Duration::ZERO,
            idle_timeout: Duration::ZERO,
            connection_lifetime: Duration::ZERO,
            connections_max: 0,
            drain_timeout: Duration::ZERO,
            signing_threads: 0,
            fresh_bytes_max: 0,
            messages_max: 0,
            providers_file: None,
            warm_up_plan: Vec::new(),
            simulator: None,
            simulator_domain: DomainName::parse("unset.invalid").expect("a valid name"),
            ca_file: None,
            mta_sts_port: 0,
            ipv6: true,
            dkim: true,
            dkim_ed25519: false,
        }
    }
}

impl Delivery {
    /// Warm-up plan of new source addresses.
    pub(crate) fn warm_up(&self) -> WarmUpPlan {
        if self.warm_up_plan.is_empty() {
            WarmUpPlan::default()
        } else {
            WarmUpPlan::new(self.warm_up_plan.clone())
        }
    }
}

/// Default retry pauses of `dev`.
fn dev_pauses() -> Vec<Duration> {
    [1, 2, 5, 10, 30, 60, 120, 300, 600].map(Duration::from_secs).to_vec()
}

impl Config {
    /// Settings of the delivery engine; `dev` selects the defaults of `postroad dev`.
    pub(crate) fn delivery_settings(&self, dev: bool) -> anyhow::Result<Settings> {
        let settings = &self.delivery;
        let pauses = match (settings.retry_schedule.is_empty(), dev) {
            (false, _) => settings.retry_schedule.clone(),
            (true, true) => dev_pauses(),
            (true, false) => RetryPolicy::default().pauses().to_vec(),
        };
        let leaves_machine = settings.smarthost.is_some() || settings.allow_private_destinations;
        let overrides = match &settings.providers_file {
            Some(file) => Some(
                std::fs::read_to_string(file)
                    .with_context(|| format!("`delivery.providers_file`: cannot read {}", file.display()))?,
            ),
            None => None,
        };
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Ok(Settings {
            hostname: self.hostname.clone(),
            journal_dir: self.data_dir.join("flights"),
            smtp_port: settings.smtp_port,
            smart_host: settings.smarthost.clone().map(|(host, port)| SmartHost {
                host,
                port,
                tls: settings.smarthost_tls,
                credentials: (!settings.smarthost_username.is_empty())
                    .then(|| (settings.smarthost_username.clone(), settings.smarthost_password.0.clone())),
                connections_max: u32::try_from(settings.smarthost_connections).unwrap_or(u32::MAX),
                rate: settings.smarthost_rate,
            }),
            allow_private_destinations: settings.allow_private_destinations,
            retry: RetryPolicy::new(pauses, settings.give_up_after),
            delay_notice_after: settings.delay_notice_after,
            reply_timeout: settings.reply_timeout,
            final_reply_timeout: settings.final_reply_timeout,
            connect_timeout: settings.connect_timeout,
            busy_greeting_timeout: settings.busy_greeting_timeout,
            idle_timeout: settings.idle_timeout,
            connection_lifetime: settings.connection_lifetime,
            connections_max: u32::try_from(settings.connections_max).unwrap_or(u32::MAX),
            dkim: settings.dkim,
            signing_threads: if settings.signing_threads == 0 { cores } else { settings.signing_threads },
            fresh_bytes_max: settings.fresh_bytes_max,
            messages_max: settings.messages_max,
            warm_up: settings.warm_up(),
            provider_overrides: overrides,
            simulator_domain: settings.simulator_domain.clone(),
            simulator: settings.simulator.unwrap_or(dev),
            catch_all: settings.catch_all.unwrap_or(dev && !leaves_machine),
            drain_timeout: settings.drain_timeout,
            ca_file: settings.ca_file.clone(),
            mta_sts_port: settings.mta_sts_port,
            mta_sts_file: self.data_dir.join("mta-sts-policies"),
            nameservers: self.dns.nameservers.clone(),
            dnssec: self.dns.dnssec,
            ipv6: settings.ipv6,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::KEYS;
    use super::super::units::parse_duration;
    use super::*;

    #[test]
    fn the_explanation_of_retry_schedule_lists_the_default_pauses() {
        let key = KEYS.iter().find(|key| key.path == "delivery.retry_schedule").expect("the key exists");
        let listed_after = |start: &str| -> Vec<Duration> {
            let (_, list) = key.doc.split_once(start).expect("the explanation lists them");
            let list = list.split(['\n', ')']).next().unwrap_or_default();
            list.split(", ").map(|pause| parse_duration(pause).expect("a pause")).collect()
        };
        assert_eq!(listed_after("Empty: "), RetryPolicy::default().pauses());
        assert_eq!(listed_after("(`dev`: "), dev_pauses());
    }
}
