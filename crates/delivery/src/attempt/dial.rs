//! Small facts about dialling: why no address was left, what an error of the socket means.

use std::io;
use std::net::IpAddr;

use postroad_model::BounceClass;
use postroad_model::token::random_text;

/// Names a connection in delivery records and logs.
pub(super) fn log_id() -> String {
    random_text(&mut rand::rng(), 10)
}

pub(super) fn class_of(error: &io::Error) -> BounceClass {
    match error.kind() {
        io::ErrorKind::TimedOut => BounceClass::Timeout,
        _ => BounceClass::Other,
    }
}

pub(super) fn why_none(
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
    format!(
        "{host} has only private addresses ({}), which are refused unless `delivery.allow_private_destinations` is true",
        fitting.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )
}
