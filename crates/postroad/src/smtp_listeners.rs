//! SMTP listeners: starts those that the configuration turns on, and shows their addresses in the ready line.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use postroad_app::App;
use postroad_net::ReloadingCertificate;
use postroad_relay::{ListenerKind, Relay};
use serde_json::{Value, json};

use crate::config::Config;
use crate::listen::bind;

/// Addresses of the listeners.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SmtpAddresses {
    pub(crate) starttls: Option<SocketAddr>,
    pub(crate) tls: Option<SocketAddr>,
    pub(crate) extra: Option<SocketAddr>,
    pub(crate) plain: Option<SocketAddr>,
    /// Listener without a login, in `postroad dev`.
    pub(crate) open: Option<SocketAddr>,
    pub(crate) bounce: Option<SocketAddr>,
}

impl SmtpAddresses {
    /// The addresses for `serve --json`; `null` for listeners that are off.
    pub(crate) fn to_json(self) -> Value {
        let text = |address: Option<SocketAddr>| address.map(|address| address.to_string());
        json!({
            "starttls": text(self.starttls),
            "tls": text(self.tls),
            "extra": text(self.extra),
            "plain": text(self.plain),
            "bounce": text(self.bounce),
        })
    }

    /// Settings of mail clients for `dev --json`; `host` is the name or address by which they reach the service.
    pub(crate) fn client_settings(&self, host: &str) -> Value {
        let port = |address: Option<SocketAddr>| address.map(|address| address.port());
        let mut settings = json!({
            "host": host,
            "starttls_port": port(self.starttls),
            "tls_port": port(self.tls),
            "bounce_port": port(self.bounce),
        });
        // Optional fields that scripts do not rely on.
        for (name, address) in [("extra_port", self.extra), ("plain_port", self.plain.or(self.open))] {
            if let Some(port) = port(address) {
                settings[name] = json!(port);
            }
        }
        settings
    }
}

/// Starts the listeners that are on.
pub(crate) async fn start(
    app: &App,
    config: &Config,
    certificate: Option<&Arc<ReloadingCertificate>>,
) -> anyhow::Result<(Vec<Relay>, SmtpAddresses)> {
    let mut addresses = SmtpAddresses::default();
    let submission = start_submission(app, config, certificate, &mut addresses).await?;
    let returns = start_returns(app, config, certificate, &mut addresses).await?;
    let relays: Vec<Relay> = submission.into_iter().chain(returns).collect();
    if !relays.is_empty() {
        tracing::info!(smtp = %addresses.to_json(), "listening");
    }
    Ok((relays, addresses))
}

/// Starts the bounce listener, with its own sessions and memory: a flood of bounces must not stop submission.
async fn start_returns(
    app: &App,
    config: &Config,
    certificate: Option<&Arc<ReloadingCertificate>>,
    addresses: &mut SmtpAddresses,
) -> anyhow::Result<Option<Relay>> {
    let Some(address) = config.smtp.bounce_listen else { return Ok(None) };
    let listener = bind(address, config.smtp.preferred_addresses.contains(&address), "SMTP").await?;
    addresses.bounce = Some(listener.local_addr()?);
    let tls = certificate.map(ReloadingCertificate::smtp_config);
    let kind = ListenerKind::Returns { receiver: app.return_receiver().await?, tls };
    Ok(Some(Relay::start(app, &config.relay_settings().for_returns(), vec![(kind, listener)])))
}

async fn start_submission(
    app: &App,
    config: &Config,
    certificate: Option<&Arc<ReloadingCertificate>>,
    addresses: &mut SmtpAddresses,
) -> anyhow::Result<Option<Relay>> {
    let smtp = &config.smtp;
    let tls = certificate.map(ReloadingCertificate::smtp_config);
    let need_tls = || tls.clone().context("SMTP with AUTH needs `tls.certificate` and `tls.key`");
    let listen = |address| bind(address, smtp.preferred_addresses.contains(&address), "SMTP");
    let mut listeners = Vec::new();
    if let Some(address) = smtp.starttls_listen {
        let listener = listen(address).await?;
        addresses.starttls = Some(listener.local_addr()?);
        listeners.push((ListenerKind::StartTls(need_tls()?), listener));
    }
    if let Some(address) = smtp.tls_listen {
        let listener = listen(address).await?;
        addresses.tls = Some(listener.local_addr()?);
        listeners.push((ListenerKind::Tls(need_tls()?), listener));
    }
    if let Some(address) = smtp.extra_listen {
        let listener = listen(address).await?;
        addresses.extra = Some(listener.local_addr()?);
        listeners.push((ListenerKind::StartTls(need_tls()?), listener));
    }
    if let Some(address) = smtp.plain_listen {
        let listener = listen(address).await?;
        addresses.plain = Some(listener.local_addr()?);
        listeners.push((ListenerKind::Plain, listener));
    }
    if let Some(address) = smtp.open_listen {
        let listener = listen(address).await?;
        addresses.open = Some(listener.local_addr()?);
        listeners.push((ListenerKind::Open, listener));
    }
    if listeners.is_empty() {
        return Ok(None);
    }
    Ok(Some(Relay::start(app, &config.relay_settings(), listeners)))
}
