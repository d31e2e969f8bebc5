//! Sending limits of large receivers: a built-in table, looked up by MX host name. The operator can change and add
//! entries.

mod provider_file;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use postroad_model::{DomainName, SendRate};

pub use self::provider_file::ProviderProblem;
use self::provider_file::{DEFAULT_NAME, Entry, parse_entries};

/// The built-in table; tests check its entries.
const BUILT_IN: &str = include_str!("../../rules/providers.toml");

/// The limits of one receiver, which hold for each source address, and how the receiver is recognised.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    /// Name in pacing notes, gates and analytics.
    pub name: String,
    /// Receiver group, which warm-ups count by: a provider with its own rules, or all others together.
    pub group: Arc<str>,
    /// Ends of MX host names, in lower case; empty for the default entry.
    pub mx_suffixes: Vec<String>,
    /// Mailbox domains of the provider, for analytics by provider: known without a look-up.
    pub recipient_domains: Vec<DomainName>,
    pub connections_max: u32,
    /// Maximum number of new connections a minute; `None` for unlimited.
    pub connections_per_minute: Option<u32>,
    pub messages_per_connection_max: u32,
    /// `None` for unlimited.
    pub messages_per_minute: Option<f64>,
    /// Maximum number of connections before the first message was accepted.
    pub slow_start_connections: u32,
    pub idle_max: Duration,
    pub connection_age_max: Duration,
    /// Whether the provider sends complaints to the DKIM signers of a message.
    pub feedback_by_dkim: bool,
    /// Where the numbers come from, such as a page of the provider.
    pub basis: String,
    /// MX hosts that match this entry and no other; a test checks them.
    pub samples: Vec<String>,
}

impl Provider {
    /// Whether this is the entry for all receivers that are not in the table.
    pub fn is_default(&self) -> bool {
        self.name == DEFAULT_NAME
    }
}

/// The table, and the entry for all other receivers.
#[derive(Debug, Clone)]
pub struct Providers {
    known: Vec<Arc<Provider>>,
    default: Arc<Provider>,
    by_suffix: HashMap<String, usize>,
}

impl Providers {
    pub fn built_in() -> Self {
        Self::with_overrides("").expect("the built-in table is good: a test reads it")
    }

    /// The built-in table with an operator's file applied, which changes single keys of known entries and adds new
    /// ones.
    pub fn with_overrides(toml: &str) -> Result<Self, ProviderProblem> {
        let mut changes = parse_entries(toml)?;
        let mut entries = Vec::new();
        for (name, entry) in parse_entries(BUILT_IN)? {
            let entry = changes.remove(&name).unwrap_or_default().with_missing_from(entry);
            entries.push((name, entry));
        }
        // The operator's new entries come last, so that a conflict is attributed to the operator's file.
        entries.extend(changes);
        Self::assemble(entries)
    }

    fn assemble(mut entries: Vec<(String, Entry)>) -> Result<Self, ProviderProblem> {
        let index = entries.iter().position(|(name, _)| name == DEFAULT_NAME);
        let (_, default_entry) = entries.remove(index.expect("the built-in table has a default"));
        let default = default_entry.clone().into_provider(DEFAULT_NAME)?;
        let mut known: Vec<Arc<Provider>> = Vec::with_capacity(entries.len());
        let mut by_suffix: HashMap<String, usize> = HashMap::new();
        for (name, entry) in entries {
            let provider =
                entry.with_missing_from(default_entry.without_description()).into_provider(&name)?;
            for suffix in &provider.mx_suffixes {
                if let Some(other) = by_suffix.insert(suffix.clone(), known.len()) {
                    let other = known.get(other).map_or(&name, |other| &other.name).clone();
                    return Err(ProviderProblem::SuffixTwice {
                        provider: name,
                        suffix: suffix.clone(),
                        other,
                    });
                }
            }
            known.push(Arc::new(provider));
        }
        Ok(Self { known, default: Arc::new(default), by_suffix })
    }

    /// The provider of a host. The longest suffix wins; `notgoogle.com` is not Google's.
    pub fn find(&self, mx_host: &str) -> &Arc<Provider> {
        let host = mx_host.trim_end_matches('.').to_ascii_lowercase();
        let mut rest = host.as_str();
        loop {
            if let Some(index) = self.by_suffix.get(rest) {
                return &self.known[*index];
            }
            match rest.split_once('.') {
                Some((_, parent)) => rest = parent,
                None => return &self.default,
            }
        }
    }

    /// An entry for hosts in this process: no limits of rate or of messages per connection.
    pub(crate) fn in_process(&self) -> Arc<Provider> {
        Arc::new(Provider {
            name: "local".to_owned(),
            group: "local".into(),
            connections_max: 20,
            connections_per_minute: None,
            messages_per_connection_max: u32::MAX,
            messages_per_minute: None,
            slow_start_connections: 4,
            ..Provider::clone(&self.default)
        })
    }

    /// Limits of a smart host: connections and rate as the operator set them. The table's limits are for receivers
    /// without an agreement with us.
    pub(crate) fn smart_host(&self, connections_max: u32, rate: Option<SendRate>) -> Arc<Provider> {
        Arc::new(Provider {
            name: "smarthost".to_owned(),
            group: "smarthost".into(),
            connections_max,
            connections_per_minute: None,
            messages_per_connection_max: 1_000,
            messages_per_minute: rate
                .map(|rate| f64::from(rate.count) * 60.0 / rate.per.duration().as_secs_f64()),
            slow_start_connections: connections_max,
            ..Provider::clone(&self.default)
        })
    }

    /// Mailbox domains, each with the name of its provider.
    pub(crate) fn recipient_domains(&self) -> impl Iterator<Item = (DomainName, String)> {
        let of = |provider: &Arc<Provider>| {
            let name = provider.name.clone();
            provider.recipient_domains.clone().into_iter().map(move |domain| (domain, name.clone()))
        };
        self.known.iter().flat_map(of)
    }

    /// The built-in entries by name, the operator's own by name, then the default.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.known.iter().chain([&self.default]).map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests;
