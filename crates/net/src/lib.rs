//! Talking to the network: DNS, MX plans, and the TLS configuration of listeners.
//!
//! Nothing here holds state of messages.

mod certificate;
pub mod dns;
mod single_flight;

pub use certificate::{CertificateError, ReloadingCertificate};
