//! Kinds of SMTP listeners: submission with or without TLS, and returned mail.

use std::sync::Arc;

use postroad_app::ReturnReceiver;
use rustls::ServerConfig as TlsConfig;

/// Purpose and encryption of a listener.
#[derive(Debug, Clone)]
pub enum ListenerKind {
    /// Clients start TLS with STARTTLS (usually ports 587 and 2525).
    StartTls(Arc<TlsConfig>),
    /// TLS from the first byte (usually port 465).
    Tls(Arc<TlsConfig>),
    /// No TLS and no AUTH: for clients whose address is bound to a credential.
    Plain,
    /// No TLS and no AUTH: every client submits with the key of `postroad dev`, from any From address.
    Open,
    /// For bounces, complaints and reports (usually port 25): no AUTH, STARTTLS if there is a certificate, no relaying.
    Returns { receiver: ReturnReceiver, tls: Option<Arc<TlsConfig>> },
}
