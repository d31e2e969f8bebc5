//! Network access: DNS and mail hosts, MTA-STS, DANE, TLS of listeners and clients, limits for each tenant or client.
//! Also the check that an address is public, the guarded HTTP client, and the name server and self-signed certificate
//! of `postroad dev`.
//!
//! The crate holds no state of messages and knows no SMTP.

mod certificate;
mod certificate_expiry;
pub mod client_tls;
pub mod dane;
pub mod dns;
mod fair_permits;
pub mod guard;
pub mod guarded_http;
pub mod limits;
pub mod local_dns;
pub mod mta_sts;
mod private_file;
mod self_signed;
mod shared_lookup;

pub use certificate::{CertificateError, CertificateFiles, CertificateStatus, ReloadingCertificate};
pub use self_signed::ensure_self_signed;
