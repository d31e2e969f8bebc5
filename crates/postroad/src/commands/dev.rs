//! `postroad dev`: a running service within a minute. Loopback only, no configuration, with a key and a domain.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;

use anyhow::Context;
use postroad_app::{App, DevSetup};
use postroad_net::ensure_self_signed;
use serde_json::json;

use super::load_config;
use super::serve::until_stopped;
use crate::cli::{DevArgs, LogFormat};
use crate::config::{Config, Database};
use crate::logging;
use crate::service::{Service, create_data_dir};
use crate::signals::Signals;
use crate::smtp_listeners::SmtpAddresses;
use crate::terminal::print;

const STARTTLS_PORT: u16 = 2587;
const TLS_PORT: u16 = 2465;
const BOUNCE_PORT: u16 = 2526;
const CERTIFICATE_FILE: &str = "dev-certificate.pem";

pub(crate) async fn run(args: DevArgs, log_format: Option<LogFormat>) -> anyhow::Result<()> {
    let config = config(&args)?;
    create_data_dir(&config.data_dir)?;
    ensure_certificate(&config)?;
    logging::start(log_format, config.log.format);
    let mut signals = Signals::listen()?;
    let service = Service::start(&config, true).await.map_err(|error| {
        if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::AddrInUse) {
            error.context("`postroad dev --http-port 0 --smtp-port 0 --smtps-port 0 --bounce-port 0` takes any free ports")
        } else {
            error
        }
    })?;
    let setup = set_up(&config, &service.app).await?;
    let address = service.http_address.expect("dev listens on HTTP");
    let url = format!("http://{address}");
    if args.json {
        let ready = json!({
            "url": url,
            "api_key": setup.api_key,
            "api_secret": setup.api_secret,
            "account_api_key": setup.account_api_key,
            "operator_api_key": setup.operator_api_key,
            "sign_in_url": setup.sign_in_url,
            "domain": setup.domain,
            "pid": std::process::id(),
            "smtp": service.smtp_addresses.client_settings(),
        });
        print(&ready.to_string());
    } else {
        let data_dir = config.data_dir.display().to_string();
        let inbox = service.has_inbox();
        print(&welcome(&url, inbox, service.smtp_addresses, &setup, &data_dir));
    }
    drop(setup);
    until_stopped(service, &mut signals).await;
    Ok(())
}

/// Creates a new key that replaces the key of the previous start on this folder.
async fn set_up(config: &Config, app: &App) -> anyhow::Result<DevSetup> {
    if matches!(config.database, Database::Sqlite { .. }) {
        return Ok(app.dev_setup().await?);
    }
    // Other processes may use the same PostgreSQL database with their own keys: the folder remembers ours.
    let file = config.data_dir.join("dev-key-id");
    let previous = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
    let setup = app.dev_setup_beside_others(previous).await?;
    let mut options = std::fs::File::options();
    let opened = options.create(true).truncate(true).write(true).mode(0o600).open(&file);
    opened
        .and_then(|mut file| file.write_all(setup.key_ids.to_string().as_bytes()))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(setup)
}

/// Defaults and environment, overridden by the command line; never reachable from other machines.
fn config(args: &DevArgs) -> anyhow::Result<Config> {
    let mut config = load_config(None, args.json)?;
    if let Some(data_dir) = &args.data_dir {
        config.data_dir.clone_from(data_dir);
    }
    if let Some(port) = args.http_port {
        config.http.listen = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let is_local = config.http.listen.is_some_and(|address| address.ip().is_loopback());
    anyhow::ensure!(
        is_local,
        "`postroad dev` is for this machine only: set POSTROAD_HTTP_LISTEN to a 127.0.0.1 address"
    );
    config.http.https_listen = None;
    set_smtp(&mut config, args);
    anyhow::ensure!(
        config.smtp.listeners().all(|address| address.ip().is_loopback()),
        "`postroad dev` is for this machine only: set POSTROAD_SMTP_* to 127.0.0.1 addresses"
    );
    Ok(config)
}

/// Enables SMTP always; without an address on the usual ports, or on free ones if they are taken.
fn set_smtp(config: &mut Config, args: &DevArgs) {
    let here = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let smtp = &mut config.smtp;
    for (listen, given, usual) in [
        (&mut smtp.starttls_listen, args.smtp_port, STARTTLS_PORT),
        (&mut smtp.tls_listen, args.smtps_port, TLS_PORT),
        (&mut smtp.bounce_listen, args.bounce_port, BOUNCE_PORT),
    ] {
        *listen = given.map(here).or(*listen);
        if listen.is_none() {
            *listen = Some(here(usual));
            smtp.preferred.push(here(usual));
        }
    }
    if config.tls.certificate.is_none() {
        config.tls.certificate = Some(config.data_dir.join(CERTIFICATE_FILE));
        config.tls.key = Some(config.data_dir.join("dev-key.pem"));
    }
}

/// Creates a self-signed certificate, unless one is configured.
fn ensure_certificate(config: &Config) -> anyhow::Result<()> {
    let (Some(certificate), Some(key)) = (&config.tls.certificate, &config.tls.key) else { return Ok(()) };
    if *certificate != config.data_dir.join(CERTIFICATE_FILE) {
        return Ok(());
    }
    let names = ["localhost", "127.0.0.1", "::1", config.hostname.as_str()].map(ToOwned::to_owned);
    ensure_self_signed(certificate, key, &names).context("cannot write a certificate into the data directory")
}

fn welcome(url: &str, has_inbox: bool, smtp: SmtpAddresses, setup: &DevSetup, data_dir: &str) -> String {
    let port = |address: Option<SocketAddr>| address.map_or(0, |address| address.port());
    let host = smtp.host().unwrap_or(Ipv4Addr::LOCALHOST.into());
    let (starttls_port, tls_port) = (port(smtp.starttls), port(smtp.tls));
    let inbox = if has_inbox {
        format!(
            "{url}/dev/ in a browser, {url}/dev/messages as JSON: catches all mail, none leaves this machine"
        )
    } else {
        "off: the configuration lets mail leave this machine".to_owned()
    };
    let DevSetup { api_key, api_secret, domain, server_name, credential_name, .. } = setup;
    let DevSetup { account_api_key, operator_api_key, sign_in_url, .. } = setup;
    format!(
        r#"Postroad is running on this machine only. Stop it with Ctrl-C; data stays in {data_dir}.

  Portal      {sign_in_url}
              signs you in, as often as you like while this runs
  Inbox       {inbox}
  API         {url}/api/v1
  API docs    {url}/api/v1/openapi.json
  API key     {api_key}
  API secret  {api_secret}
  Account     {account_api_key} in the header X-Account-API-Key
  Operator    {operator_api_key} in the header X-Operator-API-Key
  SMTP        {host} port {starttls_port} with STARTTLS, or port {tls_port} with TLS (self-signed certificate);
              user = API key, password = API secret
  Credential  {credential_name} (server {server_name}); the keys are shown this once; the next start makes
              others and revokes these
  Domain      {domain} (verified: send from any address at it)

Send a first message:

  curl {url}/api/v1/send/message \
    -H 'X-Server-API-Key: {api_key}' \
    -H 'Content-Type: application/json' \
    -d '{{"to": ["you@example.com"], "from": "hello@{domain}", "subject": "First", "plain_body": "It works."}}'
"#
    )
}
