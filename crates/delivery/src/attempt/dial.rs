//! Parts of dialling: ids of connections, the class of socket errors, the reason why no address can be dialled, and
//! which addresses senders may see.

use std::io;
use std::net::IpAddr;

use postroad_model::BounceClass;
use postroad_model::token::random_text;
use postroad_net::guard;

/// Identifies a connection in delivery records.
pub(super) fn log_id() -> String {
    random_text(&mut rand::rng(), 10)
}

pub(super) fn class_of(error: &io::Error) -> BounceClass {
    match error.kind() {
        io::ErrorKind::TimedOut => BounceClass::Timeout,
        _ => BounceClass::Other,
    }
}

/// Why no address of the host can be dialled, for the delivery record.
pub(super) fn no_address_reason(
    host: &str,
    found: &[IpAddr],
    family_fits: impl Fn(&IpAddr) -> bool,
    may_dial: impl Fn(&IpAddr) -> bool,
) -> String {
    let fitting: Vec<&IpAddr> = found.iter().filter(|address| family_fits(address)).collect();
    if found.is_empty() {
        return format!("{host} has no address");
    }
    if fitting.is_empty() {
        return format!("{host} has no address of the source address's family");
    }
    debug_assert!(!fitting.iter().any(|address| may_dial(address)), "a usable address was left");
    // Senders read this, so it must not reveal the operator's network; the log has the addresses.
    tracing::debug!(host, addresses = ?fitting, "the host has only private addresses; not dialled");
    format!(
        "{host} has only private addresses, which are refused unless `delivery.allow_private_destinations` is true"
    )
}

/// Whether delivery records may show the address to senders. Records must not reveal the operator's network; the
/// loopback address reveals nothing.
pub(super) fn may_show(address: IpAddr, allow_private: bool) -> bool {
    allow_private || address.is_loopback() || guard::is_public(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_not_shown_unless_they_are_allowed() {
        for (text, is_shown) in [
            ("10.1.2.3", false),
            ("192.168.0.9", false),
            ("169.254.169.254", false),
            ("fd00:ec2::254", false),
            ("::ffff:10.1.2.3", false),
            ("127.0.0.1", true),
            ("8.8.8.8", true),
            ("2606:4700::1111", true),
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(may_show(address, false), is_shown, "{text}");
            assert!(may_show(address, true));
        }
    }

    #[test]
    fn the_reason_reveals_no_private_address() {
        let found: Vec<IpAddr> = ["10.1.2.3", "fd00::7"].map(|text| text.parse().unwrap()).to_vec();
        let problem = no_address_reason("mx.example", &found, |_| true, |_| false);
        assert!(problem.contains("only private addresses"), "{problem}");
        assert!(!problem.contains("10.1.2.3") && !problem.contains("fd00"), "{problem}");
    }
}
