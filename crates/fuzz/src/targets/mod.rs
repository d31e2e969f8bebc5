//! The table of targets.

mod addresses;
mod csv;
mod http;
mod mime;
mod reports;
mod returned;
mod smtp_client;
mod smtp_server;
mod tokens;

/// Something that reads strangers' bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Good inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Pieces of text around which hostile patterns are put: they go where `{}` is.
    pub frames: &'static [&'static str],
}

/// One line per reader.
pub const TARGETS: &[Target] = &[
    addresses::TARGET,
    csv::TARGET,
    http::TARGET,
    mime::TARGET,
    reports::TARGET,
    returned::TARGET,
    smtp_client::TARGET,
    smtp_server::TARGET,
    tokens::TARGET,
];

pub fn find_target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Seeds from texts.
fn texts(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}
