//! Sending domains: who may use them, whether they are verified, the DKIM keys that sign for them, and what receivers
//! report about them.

mod checks;
mod keys;
mod lifecycle;
mod records;
mod reports;
mod statements;
mod store;
mod tracking;

pub use records::{
    Domain, DomainCheck, DomainDelivery, DomainFilter, DomainKey, DomainOwner, DomainTracking, KeyAlgorithm,
    KeyState, NewDkimKey, NewDomain, SendingDomain, SigningKey, VerifiedBy,
};
pub use reports::{DomainReport, DomainReportSum, ReportKind};
