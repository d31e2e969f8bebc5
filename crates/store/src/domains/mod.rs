//! Sending domains: who may use them, whether they are verified, the DKIM keys that sign for them, and what receivers
//! report about them.

mod records;
mod reports;
mod statements;
mod store;
mod tracking;

pub use records::{Domain, DomainTracking, Ed25519Key, NewDomain, SigningKeys};
pub use reports::{DomainReport, DomainReportSum, ReportKind};
