//! Settings of the SMTP listeners.

use std::net::SocketAddr;

use ipnet::IpNet;

use super::Config;
use super::layers::Layers;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Smtp {
    pub(crate) starttls_listen: Option<SocketAddr>,
    pub(crate) tls_listen: Option<SocketAddr>,
    pub(crate) extra_listen: Option<SocketAddr>,
    pub(crate) plain_listen: Option<SocketAddr>,
    pub(crate) bounce_listen: Option<SocketAddr>,
    /// Listener of `postroad dev` that asks for no login. Not a setting of the table of keys.
    pub(crate) open_listen: Option<SocketAddr>,
    pub(crate) proxy_protocol_from: Vec<IpNet>,
    pub(crate) in_flight_bytes_max: usize,
    pub(crate) sessions_max: usize,
    pub(crate) sessions_per_address_max: usize,
    /// Preferred addresses of `postroad dev`: if their ports are taken, the next free ones are used. Not a setting of
    /// the table of keys.
    pub(crate) preferred_addresses: Vec<SocketAddr>,
}

impl Smtp {
    /// Whether a listener needs a certificate.
    pub(crate) fn has_tls(&self) -> bool {
        [self.starttls_listen, self.tls_listen, self.extra_listen].iter().any(Option::is_some)
    }

    pub(crate) fn listeners(&self) -> impl Iterator<Item = SocketAddr> {
        let submission = [self.starttls_listen, self.tls_listen, self.extra_listen, self.plain_listen];
        submission.into_iter().chain([self.open_listen, self.bounce_listen]).flatten()
    }
}

impl Config {
    pub(crate) fn relay_settings(&self) -> postroad_relay::Settings {
        postroad_relay::Settings {
            message_bytes_max: self.limits.message_bytes_max,
            in_flight_bytes_max: self.smtp.in_flight_bytes_max,
            proxy_protocol_from: self.smtp.proxy_protocol_from.clone(),
            sessions_max: self.smtp.sessions_max,
            sessions_per_address_max: self.smtp.sessions_per_address_max,
            ..postroad_relay::Settings::new(self.hostname.clone())
        }
    }
}

/// Refuses listeners with AUTH if there is no certificate: they would be useless, because AUTH is accepted only inside
/// TLS.
pub(super) fn check(config: &Config, layers: &mut Layers) {
    if config.tls.certificate.is_some() {
        return;
    }
    for (key, address) in [
        ("smtp.starttls_listen", config.smtp.starttls_listen),
        ("smtp.tls_listen", config.smtp.tls_listen),
        ("smtp.extra_listen", config.smtp.extra_listen),
    ] {
        if address.is_some() {
            layers.add_problem(
                key,
                "SMTP with AUTH needs a certificate; set `tls.certificate` and `tls.key`, or leave this empty",
            );
        }
    }
}
