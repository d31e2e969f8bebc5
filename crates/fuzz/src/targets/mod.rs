//! Table of fuzz targets.

mod addresses;
mod csv;
mod dns_texts;
mod http;
mod mime;
mod reports;
mod returned;
mod smtp_client;
mod smtp_server;
mod templates;
mod tokens;

/// Parser of untrusted bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Valid inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Texts around a hostile piece that is repeated, which replaces `{}`.
    pub frames: &'static [&'static str],
}

/// One line per parser.
pub const TARGETS: &[Target] = &[
    addresses::TARGET,
    csv::TARGET,
    dns_texts::TARGET,
    http::TARGET,
    mime::TARGET,
    reports::TARGET,
    returned::TARGET,
    smtp_client::TARGET,
    smtp_server::TARGET,
    templates::TARGET,
    tokens::TARGET,
];

pub fn find_target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Seeds from texts.
fn texts(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}
