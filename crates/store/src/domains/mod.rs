//! Sending domains: their owners, verification, DKIM keys, tracking hosts, events, and receivers' reports about them.

mod claim_checks;
mod create;
mod delete;
mod domain;
mod find;
mod keys;
mod lifecycle;
mod links;
mod list;
mod pending_events;
mod record_check;
mod reports;
mod sending;
pub(crate) mod tracking;
mod usable;
mod verify;

pub use create::{NewDomain, OwnerDomains};
pub use domain::{
    Domain, DomainKey, DomainOwner, DomainTracking, KeyAlgorithm, KeyState, NameUse, NewDkimKey, VerifiedBy,
};
pub use links::{DomainLink, NewDomainLink};
pub use list::{DomainFilter, DomainScope};
pub use record_check::DomainCheck;
pub use reports::{DomainReport, DomainReportSum, ReportKind};
pub use sending::{DomainDelivery, SendingDomain, SigningKey};
