//! Checks of settings that are valid alone but cannot work together, and of durations that are too short.

use std::time::Duration;

use super::Config;
use super::layers::Layers;

const RETENTION_CHECK_EVERY_MIN: Duration = Duration::from_millis(100);

pub(super) fn check_together(config: &Config, layers: &mut Layers) {
    check_tls(config, layers);
    check_plain_http(config, layers);
    check_counters(config, layers);
    check_forwarding(config, layers);
    check_domain_checks(config, layers);
    check_retention(config, layers);
    let largest = [
        ("limits.request_bytes", config.limits.request_bytes_max),
        ("limits.batch_bytes", config.limits.batch_bytes_max),
    ];
    // One problem is enough, even if both limits are larger.
    if let Some((key, _)) = largest.into_iter().find(|(_, bytes)| config.in_flight_bytes_max < *bytes) {
        let problem = format!("is less than `{key}`, so that a single request could exceed it; raise it");
        layers.add_problem("limits.in_flight_bytes", &problem);
    }
}

fn check_tls(config: &Config, layers: &mut Layers) {
    match (&config.tls.certificate, &config.tls.key) {
        (Some(_), Some(_)) => {}
        (None, None) => {
            if config.http.https_listen.is_some() {
                layers.add_problem(
                    "http.https_listen",
                    "HTTPS needs a certificate; set `tls.certificate` and `tls.key`, or leave this empty",
                );
            }
        }
        (Some(_), None) => {
            layers.add_problem("tls.certificate", "a certificate needs its private key; set `tls.key`");
        }
        (None, Some(_)) => {
            layers.add_problem("tls.key", "a private key needs its certificate; set `tls.certificate`");
        }
    }
}

/// Refuses plain HTTP on an address for other machines if HTTPS is off: plain HTTP there only redirects to HTTPS.
fn check_plain_http(config: &Config, layers: &mut Layers) {
    let is_public = config.http.listen.is_some_and(|address| !address.ip().is_loopback());
    if is_public && !config.http.allow_plain && config.http.https_listen.is_none() {
        layers.add_problem(
            "http.listen",
            "other machines reach this address, where plain HTTP only redirects to HTTPS, and HTTPS is off; \
             either set `http.https_listen` with `tls.certificate` and `tls.key`, \
             or set `http.allow_plain = true` behind a proxy that does TLS",
        );
    }
}

/// Refuses minute counters that are kept longer than the other counters, whose dimensions they need.
fn check_counters(config: &Config, layers: &mut Layers) {
    let is_longer = match (config.retention.minute_counters, config.retention.counters) {
        (Some(minutes), Some(counters)) => minutes > counters,
        (None, counters) => counters.is_some(),
        (_, None) => false,
    };
    if is_longer {
        layers.add_problem(
            "retention.minute_counters",
            "is longer than `retention.counters`, without which minute counters cannot be read; lower it",
        );
    }
}

fn check_domain_checks(config: &Config, layers: &mut Layers) {
    let checks = config.domains.checks;
    if checks.shortest < Duration::from_secs(1) {
        layers.add_problem("domains.check_interval", "is less than a second; raise it");
    }
    if checks.longest < checks.shortest {
        layers
            .add_problem("domains.check_interval_max", "is shorter than `domains.check_interval`; raise it");
    }
}

/// Refuses retention sweeps almost without a pause: they would keep the store busy.
fn check_retention(config: &Config, layers: &mut Layers) {
    if config.retention.check_every < RETENTION_CHECK_EVERY_MIN {
        layers.add_problem("retention.check_every", "is less than 100 ms; raise it");
    }
}

/// Refuses forwarding of the operator's mail to an address of this service, where it would loop forever.
fn check_forwarding(config: &Config, layers: &mut Layers) {
    let feedback = &config.feedback;
    if feedback
        .forward_to
        .as_ref()
        .is_some_and(|to| feedback.arrives_at_bounce_listener(to, &config.hostname))
    {
        layers.add_problem(
            "feedback.forward_to",
            "the bounce listener itself takes mail for this address; name a mailbox on another mail server",
        );
    }
}
