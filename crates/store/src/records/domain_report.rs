//! What receivers report of a domain's mail.

use postroad_model::{DomainName, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    /// Messages, and those that passed (RFC 7489).
    Dmarc,
    /// Sessions, and those that went well (RFC 8460).
    Tls,
}

impl ReportKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dmarc => "dmarc",
            Self::Tls => "tls",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Dmarc, Self::Tls].into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainReport {
    pub domain: DomainName,
    pub kind: ReportKind,
    pub organisation: String,
    /// Given by the organisation; the same report may come twice.
    pub report_id: String,
    pub begin: Timestamp,
    pub end: Timestamp,
    pub total: u64,
    pub passed: u64,
    /// A JSON object.
    pub details: String,
}

/// All reports of one kind about a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainReportSum {
    pub domain: String,
    pub kind: ReportKind,
    pub reports: u64,
    pub total: u64,
    pub passed: u64,
    pub begin: Timestamp,
    pub end: Timestamp,
}
