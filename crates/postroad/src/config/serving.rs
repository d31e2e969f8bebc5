//! Checks that `serve` makes before it starts, and `check-config` too: the data folder, files that the configuration
//! names, listeners that conflict, the limit on open files, and settings that make parts of the service useless.

use std::net::{IpAddr, SocketAddr};

use postroad_delivery::providers::Providers;
use postroad_net::ReloadingCertificate;
use postroad_net::client_tls::ClientTls;
use postroad_net::dns::DNS_SOCKETS_MAX;

use super::Config;
use super::keys::KEYS;
use super::layers::Layers;
use crate::file_limit;

/// Estimated open files of HTTP clients, webhooks and the store.
const OTHER_OPEN_FILES: usize = 512;

pub(super) fn check(config: &Config, layers: &mut Layers) {
    check_data_dir(config, layers);
    check_certificate(config, layers);
    check_files(config, layers);
    check_listeners(config, layers);
    check_file_limit(config, layers);
    // The file that `config default` prints contains the default, so users may have left it there.
    let default_hostname = KEYS.iter().find(|key| key.path == "hostname").map(|key| key.default);
    if default_hostname == Some(&format!("\"{}\"", config.hostname)) {
        layers.add_warning(
            "hostname",
            "is still the default, which no other mail server can look up; set the public name of this host",
        );
    }
    if config.smtp.bounce_listen.is_none() {
        layers.add_warning(
            "smtp.bounce_listen",
            "is off, so bounces and complaints that come back later are lost; set it to port 25 of the host that \
             rp.<hostname> leads to",
        );
    }
}

fn check_data_dir(config: &Config, layers: &mut Layers) {
    match std::fs::metadata(&config.data_dir) {
        Ok(metadata) if !metadata.is_dir() => {
            layers.add_problem("data_dir", "is a file; name a folder, which is created if it does not exist");
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            layers.add_problem("data_dir", &format!("cannot be used: {error}"));
        }
        _ => {}
    }
}

fn check_certificate(config: &Config, layers: &mut Layers) {
    if let (Some(certificate), Some(key)) = (&config.tls.certificate, &config.tls.key)
        && let Err(error) = ReloadingCertificate::load(certificate, key)
    {
        layers.add_problem("tls.certificate", &error.to_string());
    }
}

fn check_files(config: &Config, layers: &mut Layers) {
    if let Some(file) = &config.delivery.providers_file {
        let problem = match std::fs::read_to_string(file) {
            Ok(text) => Providers::with_overrides(&text).err().map(|error| error.to_string()),
            Err(error) => Some(format!("cannot read {}: {error}", file.display())),
        };
        if let Some(problem) = problem {
            layers.add_problem("delivery.providers_file", &problem);
        }
    }
    let authorities = [
        ("delivery.ca_file", &config.delivery.ca_file),
        ("webhooks.ca_file", &config.webhooks.ca_file),
        ("tracking.ca_file", &config.tracking.ca_file),
        ("store.postgres_ca_file", &config.store.postgres_ca_file),
    ];
    for (key, file) in authorities {
        if let Some(file) = file
            && let Err(error) = ClientTls::new(Some(file))
        {
            layers.add_problem(key, &error.to_string());
        }
    }
}

fn configured_listeners(config: &Config) -> Vec<(&'static str, SocketAddr)> {
    let all = [
        ("http.listen", config.http.listen),
        ("http.https_listen", config.http.https_listen),
        ("smtp.starttls_listen", config.smtp.starttls_listen),
        ("smtp.tls_listen", config.smtp.tls_listen),
        ("smtp.extra_listen", config.smtp.extra_listen),
        ("smtp.plain_listen", config.smtp.plain_listen),
        ("smtp.bounce_listen", config.smtp.bounce_listen),
    ];
    all.into_iter().filter_map(|(key, address)| Some((key, address?))).collect()
}

/// Warns if the limit on open files is too low: every connection is an open file, and so is every DNS query.
fn check_file_limit(config: &Config, layers: &mut Layers) {
    // The bounce listener has as many sessions of its own as all other SMTP listeners together.
    let bounce_listeners = usize::from(config.smtp.bounce_listen.is_some());
    let has_submission = config.smtp.listeners().count() > bounce_listeners;
    let session_limits = bounce_listeners + usize::from(has_submission);
    let sessions = config.smtp.sessions_max.saturating_mul(session_limits);
    let fixed = configured_listeners(config).len() + DNS_SOCKETS_MAX + OTHER_OPEN_FILES;
    // Up to half as many additional connections may wait for the final reply to a message.
    let delivery = config.delivery.connections_max.saturating_add(config.delivery.connections_max / 2);
    let needed = fixed.saturating_add(delivery).saturating_add(sessions);
    let allowed = file_limit::hard_limit().filter(|allowed| *allowed < needed as u64);
    if let Some(allowed) = allowed {
        let text = format!(
            "the configured connections need about {needed} open files, and the system allows {allowed}; raise the hard \
             limit (LimitNOFILE= of a systemd unit, `ulimit -Hn`), or lower this and `smtp.sessions`"
        );
        layers.add_warning("delivery.connections", &text);
    }
}

fn check_listeners(config: &Config, layers: &mut Layers) {
    let listeners = configured_listeners(config);
    for (at, (key, address)) in listeners.iter().enumerate() {
        if let Some((other, taken)) =
            listeners[..at].iter().find(|(_, taken)| are_in_conflict(*taken, *address))
        {
            layers.add_problem(
                key,
                &format!("{address} is where `{other}` ({taken}) listens; give it another port"),
            );
        }
    }
    let can_applications_submit = listeners.iter().any(|(key, _)| *key != "smtp.bounce_listen");
    if !can_applications_submit {
        layers.add_warning(
            "http.listen",
            "is off like every other listener for applications, so nobody can hand in mail; this node only delivers \
             what is queued",
        );
    }
}

/// Whether two listeners cannot both bind their addresses. Port 0 means any free port.
fn are_in_conflict(one: SocketAddr, other: SocketAddr) -> bool {
    // Linux lets `[::]` take IPv4 connections as well.
    let covers = |wide: IpAddr, narrow: IpAddr| {
        wide.is_unspecified() && (wide.is_ipv6() || narrow.is_ipv4() || narrow.is_unspecified())
    };
    let (one_ip, other_ip) = (one.ip(), other.ip());
    one.port() != 0
        && one.port() == other.port()
        && (one_ip == other_ip || covers(one_ip, other_ip) || covers(other_ip, one_ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_on_overlapping_addresses_are_in_conflict() {
        let conflict = |one: &str, other: &str| are_in_conflict(one.parse().unwrap(), other.parse().unwrap());
        for (one, other) in [
            ("127.0.0.1:25", "127.0.0.1:25"),
            ("0.0.0.0:25", "127.0.0.1:25"),
            ("127.0.0.1:25", "[::]:25"),
            ("[::]:25", "0.0.0.0:25"),
            ("[::1]:25", "[::]:25"),
        ] {
            assert!(conflict(one, other) && conflict(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("127.0.0.1:25", "127.0.0.1:26"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("127.0.0.1:25", "127.0.0.2:25"),
            ("0.0.0.0:25", "[::1]:25"),
        ] {
            assert!(!conflict(one, other) && !conflict(other, one), "{one} {other}");
        }
    }
}
