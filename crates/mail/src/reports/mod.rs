//! Reports of other mail systems about a domain: DMARC aggregates (RFC 7489) and TLS reports (RFC 8460), summed up.
//!
//! Strangers send them, compressed. A report is unpacked and parsed as a stream; every byte is first charged to an
//! [`UnpackBudget`], one for all attachments of a message. A decompression bomb is distinguished from a damaged report,
//! because a bomb is an attack.

mod budget;
mod decompress;
mod dmarc;
mod text;
mod tls;
mod zip;

use std::cmp::Reverse;
use std::io;
use std::net::IpAddr;

use postroad_model::Timestamp;

use crate::mime_tree::leaves;
use decompress::AttachmentReader;
use text::{ReportText, problem_in};

pub use budget::{UNPACKED_BYTES_MAX, UnpackBudget};

/// Maximum number of MIME parts that are examined; a report has one or two.
const ATTACHMENTS_MAX: usize = 16;
/// Maximum number of sources kept of each domain: those with the most failures.
const SOURCES_MAX: usize = 200;
/// Names and ids longer than this are cut.
const NAME_BYTES_MAX: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainReport {
    Dmarc(DmarcSummary),
    Tls(TlsSummary),
}

/// One receiver's report on the mail under a domain's policy, usually for a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmarcSummary {
    pub organisation: String,
    /// Id chosen by the receiver. The same report may come twice.
    pub report_id: String,
    /// The domain whose policy applied: the senders' domain, or a parent of it.
    pub domain: String,
    pub begin: Timestamp,
    pub end: Timestamp,
    /// The policy that was published: `none`, `quarantine`, `reject`.
    pub policy: String,
    /// Senders in the order of their names.
    pub senders: Vec<DmarcSender>,
}

/// Mail with one domain in `From`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DmarcSender {
    /// Empty for mail whose domain the report does not name, and for domains beyond `SENDERS_MAX` of `dmarc.rs`.
    pub header_from: String,
    pub messages: u64,
    /// Messages that passed DKIM, SPF or both.
    pub passed: u64,
    pub quarantined: u64,
    pub rejected: u64,
    /// Hosts that sent in the domain's name, those with the most failures first.
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

/// One sending mail system's report on its TLS sessions to a domain.
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
    /// Result types with their numbers of sessions, the most frequent first.
    pub failure_types: Vec<(String, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReportProblem {
    #[error("the report unpacks to far more bytes than a real report of its packed size: an attack")]
    Bomb,
    #[error("the report is too large: it unpacks to too many bytes, or has too many records")]
    TooLarge,
    #[error("the report is damaged: {0}")]
    Damaged(&'static str),
}

impl DmarcSender {
    /// Adds the counts of another domain's mail.
    pub fn add(&mut self, other: Self) {
        let add = |total: &mut u64, count: u64| *total = total.saturating_add(count);
        add(&mut self.messages, other.messages);
        add(&mut self.passed, other.passed);
        add(&mut self.quarantined, other.quarantined);
        add(&mut self.rejected, other.rejected);
        for source in other.sources {
            if let Some(known) = self.sources.iter_mut().find(|known| known.address == source.address) {
                add(&mut known.messages, source.messages);
                add(&mut known.dkim_passed, source.dkim_passed);
                add(&mut known.spf_passed, source.spf_passed);
                add(&mut known.failed, source.failed);
            } else {
                self.sources.push(source);
            }
        }
        sort_and_limit_sources(&mut self.sources);
    }
}

/// Sorts the sources by their failures, and drops those beyond the maximum number.
fn sort_and_limit_sources(sources: &mut Vec<DmarcSource>) {
    sources.sort_by_key(|source| Reverse((source.failed, source.messages)));
    sources.truncate(SOURCES_MAX);
}

/// The report in a message; `None` if there is none. All attachments share the budget.
pub fn read(message: &[u8], budget: &mut UnpackBudget) -> Result<Option<DomainReport>, ReportProblem> {
    for leaf in leaves(message).iter().take(ATTACHMENTS_MAX) {
        // Text for people is not a report, but may quote one.
        if matches!(leaf.essence().as_str(), "text/plain" | "text/html" | "message/rfc822") {
            continue;
        }
        if let Some(report) = read_attachment(&leaf.content(), budget)? {
            return Ok(Some(report));
        }
    }
    Ok(None)
}

/// Parses a file: XML or JSON, plain, gzipped or zipped, whatever its name is.
pub fn read_attachment(
    bytes: &[u8],
    budget: &mut UnpackBudget,
) -> Result<Option<DomainReport>, ReportProblem> {
    let Some(reader) = AttachmentReader::open(bytes)? else { return Ok(None) };
    let file_bytes_max = decompress::unpacked_bytes_max(bytes.len());
    let mut text = ReportText::new(reader, budget, file_bytes_max, ReportProblem::Bomb);
    match text.peek().map_err(|error| unpacking_problem(&error))? {
        Some(b'<') => Ok(dmarc::parse(text)?.map(DomainReport::Dmarc)),
        Some(b'{') => Ok(tls::parse(text)?.map(DomainReport::Tls)),
        _ => Ok(None),
    }
}

/// Unpacking budget for the reports in a message of this size. Callers reserve this many bytes before reading.
pub fn unpacked_bytes_max(message_bytes: usize) -> usize {
    decompress::unpacked_bytes_max(message_bytes).min(UNPACKED_BYTES_MAX)
}

/// Errors about our own limits pass through the readers as I/O errors; every other error means damaged data.
fn unpacking_problem(error: &io::Error) -> ReportProblem {
    problem_in(error).unwrap_or(ReportProblem::Damaged("the compressed data is broken"))
}

fn shorten(name: &str) -> String {
    let name = name.trim();
    name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_owned()
}
