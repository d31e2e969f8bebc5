//! The configuration: raw values from defaults, file and environment, resolved into one typed `Config`.
//!
//! All wrong values are reported at once, each with its origin and usually the fix. Combinations of settings are
//! checked only if no single value is wrong.

mod check;
mod delivery;
mod domains;
mod keys;
mod layers;
mod portal;
mod problem;
mod raw_value;
mod serving;
mod smtp;
#[cfg(test)]
mod tests;
mod tracking;
mod units;
mod webhooks;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use postroad_app::{FeedbackSettings, Retention};
use postroad_model::{DomainName, Limits};
use postroad_net::dns::DnssecTrust;

pub(crate) use delivery::Delivery;
pub(crate) use domains::Domains;
pub(crate) use keys::default_toml;
pub(crate) use portal::{Portal, Secrets};
pub(crate) use postroad_delivery::SmartHostTls;
pub(crate) use problem::{ConfigError, Warning};
pub(crate) use smtp::Smtp;
pub(crate) use tracking::{Tracking, base_host};
pub(crate) use units::parse_duration;
pub(crate) use webhooks::Webhooks;

use keys::KEYS;
use layers::Layers;

/// Everything that an operator can set; `keys.rs` says what each setting means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) data_dir: PathBuf,
    pub(crate) database: Database,
    pub(crate) hostname: DomainName,
    pub(crate) http: Http,
    pub(crate) tls: Tls,
    pub(crate) dns: Dns,
    pub(crate) delivery: Delivery,
    pub(crate) smtp: Smtp,
    pub(crate) feedback: FeedbackSettings,
    pub(crate) portal: Portal,
    pub(crate) secrets: Secrets,
    pub(crate) webhooks: Webhooks,
    pub(crate) domains: Domains,
    pub(crate) tracking: Tracking,
    pub(crate) limits: Limits,
    pub(crate) in_flight_bytes_max: usize,
    pub(crate) store: Store,
    pub(crate) retention: Retention,
    pub(crate) log: Log,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// Path of the file; `None` for the default file in `data_dir`.
    Sqlite {
        file: Option<PathBuf>,
    },
    Postgres {
        url: PostgresUrl,
    },
}

/// URL of a PostgreSQL database; printed without user, password and parameters.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PostgresUrl(String);

impl PostgresUrl {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Cut at the question mark first: the parameters after it may contain a password, and the password an `@`.
        let address = self.0.split('?').next().and_then(|base| base.rsplit_once('@'));
        write!(f, "postgres://…@{}", address.map_or("…", |(_, address)| address))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Http {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) https_listen: Option<SocketAddr>,
    pub(crate) allow_plain: bool,
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// Set by `postroad dev`, not by a key: if the port of `listen` is taken, the next free one is used.
    pub(crate) may_use_next_port: bool,
}

/// Files of certificate and key; both or neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dns {
    /// Name servers; empty for the system's.
    pub(crate) nameservers: Vec<SocketAddr>,
    pub(crate) dnssec: DnssecTrust,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Store {
    pub(crate) disk_reserve_bytes: usize,
    pub(crate) postgres_connections_max: usize,
    pub(crate) postgres_ca_file: Option<PathBuf>,
    pub(crate) reader_threads: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl Config {
    /// Loads the configuration. `variables` are those of the process; only `POSTROAD_*` are used, and they override the
    /// file.
    pub(crate) fn load(
        file: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<(Self, Vec<Warning>), ConfigError> {
        Self::load_and_check(file, variables, false)
    }

    /// Like `load`, and also makes the checks of `serving.rs`.
    pub(crate) fn load_for_serving(
        file: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<(Self, Vec<Warning>), ConfigError> {
        Self::load_and_check(file, variables, true)
    }

    fn load_and_check(
        file: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
        is_for_serving: bool,
    ) -> Result<(Self, Vec<Warning>), ConfigError> {
        let mut layers = Layers::of_defaults();
        if let Some(file) = file {
            layers.add_file(file);
        }
        layers.add_environment(variables);

        let mut config = Self::unset();
        for key in KEYS {
            let (_, value) = layers.value(key.path);
            if let Err(text) = (key.set)(&mut config, value) {
                layers.add_problem(key.path, &text);
            }
        }
        // After a parse error the checks would complain about values that nobody wrote.
        if layers.problems.is_empty() {
            check::check_together(&config, &mut layers);
            // Without a file, the command may be `postroad dev`, which makes its own certificate.
            if file.is_some() || is_for_serving {
                smtp::check(&config, &mut layers);
            }
            if is_for_serving {
                serving::check(&config, &mut layers);
            }
        }
        if layers.problems.is_empty() {
            Ok((config, layers.warnings))
        } else {
            Err(ConfigError { problems: layers.problems })
        }
    }

    /// Placeholder values; the table of keys overwrites every value that is a setting.
    fn unset() -> Self {
        Self {
            data_dir: PathBuf::new(),
            database: Database::Sqlite { file: None },
            hostname: DomainName::parse("unset.invalid").expect("a valid name"),
            http: Http::default(),
            tls: Tls::default(),
            dns: Dns::default(),
            delivery: Delivery::unset(),
            smtp: Smtp::default(),
            feedback: FeedbackSettings::default(),
            portal: Portal::default(),
            secrets: Secrets::default(),
            webhooks: Webhooks::default(),
            domains: Domains::default(),
            tracking: Tracking::default(),
            limits: Limits::default(),
            in_flight_bytes_max: 0,
            store: Store::default(),
            retention: Retention::default(),
            log: Log { format: LogFormat::Text },
        }
    }
}

impl Default for Config {
    /// The values of the default file.
    fn default() -> Self {
        let (config, _) = Self::load(None, std::iter::empty()).expect("the defaults are valid");
        config
    }
}
