//! Parses `rules/providers.toml` and an operator's file of the same format, and reports errors in them.

use std::collections::BTreeMap;
use std::time::Duration;

use postroad_model::DomainName;
use postroad_store::OTHER_PROVIDER;
use serde::Deserialize;

use super::Provider;

pub(super) const DEFAULT_NAME: &str = "default";

/// Mistake in a provider file. Every message names the entry or the key, except for invalid TOML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderProblem {
    #[error("not valid TOML: {0}")]
    Toml(String),
    #[error("[{provider}]: {problem}")]
    Malformed { provider: String, problem: String },
    #[error("{provider}.{key}: must be at least 1")]
    Zero { provider: String, key: &'static str },
    #[error("{provider}.mx: missing; a new provider needs the ends of its MX host names")]
    NoSuffix { provider: String },
    #[error("{provider}.mx: remove it; this entry applies to every host that matches no other")]
    DefaultSuffix { provider: String },
    #[error("{provider}.mx: `{suffix}` is not the end of a host name; write it like mail.example.com")]
    Suffix { provider: String, suffix: String },
    #[error("{provider}.domains: `{domain}` is not a domain; write it like example.com")]
    Domain { provider: String, domain: String },
    #[error("{provider}.mx: `{suffix}` belongs to {other} already")]
    SuffixTwice { provider: String, suffix: String, other: String },
}

/// One entry as written in a file; missing values come from the built-in entry of that name, then from the default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    mx: Option<Vec<String>>,
    domains: Option<Vec<String>>,
    connections_max: Option<u32>,
    connections_per_minute: Option<u32>,
    messages_per_connection_max: Option<u32>,
    messages_per_minute: Option<u32>,
    slow_start_connections: Option<u32>,
    idle_seconds_max: Option<u32>,
    connection_seconds_max: Option<u32>,
    feedback_by_dkim: Option<bool>,
    basis: Option<String>,
    samples: Option<Vec<String>>,
}

pub(super) fn parse_entries(text: &str) -> Result<BTreeMap<String, Entry>, ProviderProblem> {
    let table: toml::Table = toml::from_str(text)
        .map_err(|error| ProviderProblem::Toml(error.to_string().trim_end().to_owned()))?;
    let entries = table.into_iter().map(|(provider, value)| match value.try_into() {
        Ok(entry) => Ok((provider, entry)),
        // The error of a single table has no line number, but names the key. Its text is put on one line.
        Err(error) => {
            let problem = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            Err(ProviderProblem::Malformed { provider, problem })
        }
    });
    entries.collect()
}

impl Entry {
    /// The entry, with missing values taken from `base`.
    pub(super) fn with_missing_from(self, base: Self) -> Self {
        Self {
            mx: self.mx.or(base.mx),
            domains: self.domains.or(base.domains),
            connections_max: self.connections_max.or(base.connections_max),
            connections_per_minute: self.connections_per_minute.or(base.connections_per_minute),
            messages_per_connection_max: self
                .messages_per_connection_max
                .or(base.messages_per_connection_max),
            messages_per_minute: self.messages_per_minute.or(base.messages_per_minute),
            slow_start_connections: self.slow_start_connections.or(base.slow_start_connections),
            idle_seconds_max: self.idle_seconds_max.or(base.idle_seconds_max),
            connection_seconds_max: self.connection_seconds_max.or(base.connection_seconds_max),
            feedback_by_dkim: self.feedback_by_dkim.or(base.feedback_by_dkim),
            basis: self.basis.or(base.basis),
            samples: self.samples.or(base.samples),
        }
    }

    /// The entry without the keys that describe it, such as `basis`.
    pub(super) fn without_description(&self) -> Self {
        Self { basis: None, samples: None, domains: None, ..self.clone() }
    }

    pub(super) fn into_provider(self, name: &str) -> Result<Provider, ProviderProblem> {
        let provider = || name.to_owned();
        // A key that even the default lacks counts as zero, and is reported.
        let at_least_one = |key, value: Option<u32>| {
            value
                .filter(|value| *value > 0)
                .ok_or_else(|| ProviderProblem::Zero { provider: provider(), key })
        };
        let mx_suffixes = self.mx.unwrap_or_default();
        let is_default = name == DEFAULT_NAME;
        if is_default && !mx_suffixes.is_empty() {
            return Err(ProviderProblem::DefaultSuffix { provider: provider() });
        }
        if !is_default && mx_suffixes.is_empty() {
            return Err(ProviderProblem::NoSuffix { provider: provider() });
        }
        if let Some(suffix) = mx_suffixes.iter().find(|suffix| !is_host_end(suffix)) {
            return Err(ProviderProblem::Suffix { provider: provider(), suffix: suffix.clone() });
        }
        let domain = |text: &String| {
            DomainName::parse(text)
                .map_err(|_| ProviderProblem::Domain { provider: provider(), domain: text.clone() })
        };
        let recipient_domains =
            self.domains.unwrap_or_default().iter().map(domain).collect::<Result<_, _>>()?;
        let connections_max = at_least_one("connections_max", self.connections_max)?;
        let slow_start_connections = at_least_one("slow_start_connections", self.slow_start_connections)?;
        let seconds = |key, value| Ok(Duration::from_secs(u64::from(at_least_one(key, value)?)));
        Ok(Provider {
            name: provider(),
            group: if is_default { OTHER_PROVIDER } else { name }.into(),
            mx_suffixes: mx_suffixes.iter().map(|suffix| suffix.to_ascii_lowercase()).collect(),
            recipient_domains,
            connections_max,
            connections_per_minute: self.connections_per_minute.filter(|count| *count > 0),
            messages_per_connection_max: at_least_one(
                "messages_per_connection_max",
                self.messages_per_connection_max,
            )?,
            messages_per_minute: self.messages_per_minute.filter(|count| *count > 0).map(f64::from),
            slow_start_connections: slow_start_connections.min(connections_max),
            idle_max: seconds("idle_seconds_max", self.idle_seconds_max)?,
            connection_age_max: seconds("connection_seconds_max", self.connection_seconds_max)?,
            feedback_by_dkim: self.feedback_by_dkim.unwrap_or_default(),
            basis: self.basis.unwrap_or_default(),
            samples: self.samples.unwrap_or_default(),
        })
    }
}

fn is_host_end(suffix: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    suffix.len() <= 253 && suffix.split('.').all(is_label)
}
