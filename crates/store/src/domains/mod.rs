//! Sending domains: their owners, verification, DKIM keys, tracking hosts, events, and receivers' reports about them.

mod checks;
mod keys;
mod lifecycle;
mod links;
mod pending_events;
mod records;
mod reports;
mod statements;
mod store;
pub(crate) mod tracking;
mod usable;

pub use links::{DomainLink, NewDomainLink};
pub use records::{
    Domain, DomainCheck, DomainDelivery, DomainFilter, DomainKey, DomainOwner, DomainScope, DomainTracking,
    KeyAlgorithm, KeyState, NameUse, NewDkimKey, NewDomain, OwnerDomains, SendingDomain, SigningKey,
    VerifiedBy,
};
pub use reports::{DomainReport, DomainReportSum, ReportKind};
