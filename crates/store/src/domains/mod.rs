//! Sending domains: their owners, verification, DKIM keys, and receivers' reports about them.

mod checks;
mod keys;
mod lifecycle;
mod links;
mod records;
mod reports;
mod statements;
mod store;
mod tracking;
mod untold;

pub use links::{DomainLink, NewDomainLink};
pub use records::{
    Domain, DomainCheck, DomainDelivery, DomainFilter, DomainKey, DomainOwner, DomainTracking, KeyAlgorithm,
    KeyState, NameUse, NewDkimKey, NewDomain, OwnerDomains, SendingDomain, SigningKey, VerifiedBy,
};
pub use reports::{DomainReport, DomainReportSum, ReportKind};
