//! Sending domains: their owners, the DNS records they need, and whether these are published.

mod authentication;
mod change;
pub mod check;
mod check_task;
mod create;
mod dkim_keys;
mod facts;
mod installation_records;
mod limits;
mod link_host;
mod operator_settings;
mod owners;
mod refusal;
mod reports;
mod run_check;
mod schedule;
mod search;
mod server_domains;
mod share;
mod view;

pub use authentication::Authentication;
pub use check_task::DomainCheckTask;
pub use dkim_keys::DkimKeyRequest;
pub(crate) use limits::DomainLimits;
pub use link_host::LinkHostCheck;
pub use owners::{DomainListFilter, NamedOwner};
pub use refusal::DomainRefusal;
pub use reports::{DmarcTotals, DomainReports, ReportPeriod, SourceTotals, TlsTotals};
pub use run_check::DomainChecker;
pub use schedule::CheckIntervals;
pub use search::{DomainSelection, DomainState};
pub use share::SharedDomain;
pub use view::{DomainView, RecordView};
