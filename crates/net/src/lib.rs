//! Talking to the network. For now: the TLS configuration of our own listeners.
//!
//! Holds no state of messages and knows neither HTTP nor SMTP.

mod certificate;
mod self_signed;

pub use certificate::{CertificateError, ReloadingCertificate};
pub use self_signed::ensure_self_signed;
