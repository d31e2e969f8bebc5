//! Kinds of SMTP listeners: who connects there, and whether by TLS.

use std::sync::Arc;

use postroad_app::ReturnDesk;
use rustls::ServerConfig as TlsConfig;

/// What a listener is for.
#[derive(Debug, Clone)]
pub enum ListenerKind {
    /// Clients begin TLS by a command (587, 2525).
    StartTls(Arc<TlsConfig>),
    /// TLS from the first byte (465).
    Tls(Arc<TlsConfig>),
    /// No TLS and no AUTH: for addresses that a credential is bound to.
    Plain,
    /// For mail that comes back (25): no AUTH, TLS by a command if there is a certificate, and nothing is relayed.
    Returns { desk: ReturnDesk, tls: Option<Arc<TlsConfig>> },
}
