//! Reports that receivers mail about a domain: DMARC aggregates (RFC 7489) and TLS reports (RFC 8460), made small.
//!
//! They come from strangers, packed: everything that is unpacked or counted has a bound, and a bomb is told apart from
//! a damaged report, because the first is an attack and the second a nuisance.

mod dmarc;
mod tls;
mod unpack;
mod zip;

use std::net::IpAddr;

use postroad_model::Timestamp;

use crate::mime_tree::leaves;

pub use unpack::UNPACKED_BYTES_MAX;

/// Attachments looked at; reports have one.
const ATTACHMENTS_MAX: usize = 16;
/// Names and ids longer than this are cut.
const NAME_BYTES_MAX: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainReport {
    Dmarc(DmarcSummary),
    Tls(TlsSummary),
}

/// What one receiver saw of a domain's mail in a day or so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmarcSummary {
    pub organisation: String,
    /// Given by the receiver; the same report may come twice.
    pub report_id: String,
    pub domain: String,
    pub begin: Timestamp,
    pub end: Timestamp,
    /// The policy that was published: `none`, `quarantine`, `reject`.
    pub policy: String,
    pub messages: u64,
    /// Passed by DKIM, by SPF or by both.
    pub passed: u64,
    pub quarantined: u64,
    pub rejected: u64,
    /// Hosts that sent in the domain's name, the most failures first.
    pub sources: Vec<DmarcSource>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmarcSource {
    pub address: IpAddr,
    pub messages: u64,
    pub dkim_passed: u64,
    pub spf_passed: u64,
    pub failed: u64,
}

/// What one sender met when it delivered to a domain over TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSummary {
    pub organisation: String,
    pub report_id: String,
    pub begin: Timestamp,
    pub end: Timestamp,
    pub policies: Vec<TlsPolicy>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsPolicy {
    pub domain: String,
    /// `tlsa`, `sts` or `no-policy-found`.
    pub kind: String,
    pub successes: u64,
    pub failures: u64,
    /// Result types with their sessions, the most frequent first.
    pub failure_types: Vec<(String, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReportProblem {
    #[error("the report unpacks to far more than it could hold: an attack")]
    Bomb,
    #[error("the report is damaged: {0}")]
    Damaged(&'static str),
}

/// The report that a message carries; `None` if it carries none.
pub fn read(message: &[u8]) -> Result<Option<DomainReport>, ReportProblem> {
    for leaf in leaves(message).iter().take(ATTACHMENTS_MAX) {
        // The words for people; they may quote anything.
        if matches!(leaf.essence().as_str(), "text/plain" | "text/html" | "message/rfc822") {
            continue;
        }
        if let Some(report) = read_attachment(&leaf.content())? {
            return Ok(Some(report));
        }
    }
    Ok(None)
}

/// Reads a file: XML or JSON, plain, gzipped or zipped, whatever its name says.
pub fn read_attachment(bytes: &[u8]) -> Result<Option<DomainReport>, ReportProblem> {
    let Some(text) = unpack::unpack(bytes)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    match text.as_bytes().first() {
        Some(b'<') => Ok(dmarc::parse(text)?.map(DomainReport::Dmarc)),
        Some(b'{') => Ok(tls::parse(text)?.map(DomainReport::Tls)),
        _ => Ok(None),
    }
}

fn shorten(name: &str) -> String {
    let name = name.trim();
    name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_owned()
}
