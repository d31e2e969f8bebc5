//! The listeners of the SMTP relay: bound by the configuration, started together, named in the ready line.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use postroad_app::App;
use postroad_net::ReloadingCertificate;
use postroad_relay::{Door, Relay};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::config::Config;

/// Where the relay listens.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SmtpAddresses {
    pub(crate) starttls: Option<SocketAddr>,
    pub(crate) tls: Option<SocketAddr>,
    pub(crate) extra: Option<SocketAddr>,
    pub(crate) plain: Option<SocketAddr>,
}

impl SmtpAddresses {
    /// For `serve --json`; `null` for what is off.
    pub(crate) fn shown(&self) -> Value {
        let shown = |address: Option<SocketAddr>| address.map(|address| address.to_string());
        json!({
            "starttls": shown(self.starttls),
            "tls": shown(self.tls),
            "extra": shown(self.extra),
            "plain": shown(self.plain),
        })
    }

    /// For `dev --json`: what a mail client is told.
    pub(crate) fn client_settings(&self) -> Value {
        let port = |address: Option<SocketAddr>| address.map(|address| address.port());
        let mut settings = json!({
            "host": self.host().map(|host| host.to_string()),
            "starttls_port": port(self.starttls),
            "tls_port": port(self.tls),
        });
        // Beyond what scripts rely on, and only there if asked for.
        for (name, address) in [("extra_port", self.extra), ("plain_port", self.plain)] {
            if let Some(port) = port(address) {
                settings[name] = json!(port);
            }
        }
        settings
    }

    pub(crate) fn host(&self) -> Option<IpAddr> {
        self.starttls.or(self.tls).map(|address| address.ip())
    }
}

/// Begins to take mail. `None` if every listener is off.
pub(crate) async fn start(
    app: &App,
    config: &Config,
    certificate: Option<&Arc<ReloadingCertificate>>,
) -> anyhow::Result<(Option<Relay>, SmtpAddresses)> {
    let smtp = &config.smtp;
    let tls = certificate.map(ReloadingCertificate::smtp_config);
    let need_tls = || tls.clone().context("SMTP with AUTH needs `tls.certificate` and `tls.key`");
    let mut addresses = SmtpAddresses::default();
    let mut listeners = Vec::new();
    if let Some(address) = smtp.starttls_listen {
        let listener = bind(address, &smtp.wishes).await?;
        addresses.starttls = Some(listener.local_addr()?);
        listeners.push((Door::StartTls(need_tls()?), listener));
    }
    if let Some(address) = smtp.tls_listen {
        let listener = bind(address, &smtp.wishes).await?;
        addresses.tls = Some(listener.local_addr()?);
        listeners.push((Door::Tls(need_tls()?), listener));
    }
    if let Some(address) = smtp.extra_listen {
        let listener = bind(address, &smtp.wishes).await?;
        addresses.extra = Some(listener.local_addr()?);
        listeners.push((Door::StartTls(need_tls()?), listener));
    }
    if let Some(address) = smtp.plain_listen {
        let listener = bind(address, &smtp.wishes).await?;
        addresses.plain = Some(listener.local_addr()?);
        listeners.push((Door::Plain, listener));
    }
    if listeners.is_empty() {
        return Ok((None, addresses));
    }
    tracing::info!(smtp = %addresses.shown(), "listening");
    Ok((Some(Relay::start(app, &config.relay_settings(), listeners)), addresses))
}

async fn bind(address: SocketAddr, wishes: &[SocketAddr]) -> anyhow::Result<TcpListener> {
    let bound = match TcpListener::bind(address).await {
        Err(error) if wishes.contains(&address) && error.kind() == io::ErrorKind::AddrInUse => {
            TcpListener::bind((address.ip(), 0)).await
        }
        bound => bound,
    };
    bound.with_context(|| format!("cannot listen on {address} for SMTP (is another program using the port?)"))
}
