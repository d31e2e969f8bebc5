//! `postroad dev`: starts a service without a configuration file, with keys and a verified domain. It listens on
//! loopback unless `--listen` names another address.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;

use anyhow::Context;
use postroad_api::DevAccess;
use postroad_app::{App, DevSetup, DevSetupRequest};
use postroad_net::ensure_self_signed;
use serde_json::json;

use super::load_config;
use super::serve::until_stopped;
use crate::cli::{DevArgs, LogFormat};
use crate::config::{Config, Database, base_host};
use crate::logging;
use crate::service::{DevOptions, Service, create_data_dir};
use crate::signals::Signals;
use crate::smtp_listeners::SmtpAddresses;
use crate::terminal::{print, warn};

const HTTP_PORT: u16 = 8025;
const PLAIN_PORT: u16 = 1025;
const STARTTLS_PORT: u16 = 2587;
const TLS_PORT: u16 = 2465;
const BOUNCE_PORT: u16 = 2526;
const CERTIFICATE_FILE: &str = "dev-certificate.pem";

pub(crate) async fn run(args: DevArgs, log_format: Option<LogFormat>) -> anyhow::Result<()> {
    let config = dev_config(&args)?;
    create_data_dir(&config.data_dir)?;
    ensure_certificate(&config)?;
    logging::start(log_format, config.log.format);
    let mut signals = Signals::listen()?;
    let options = dev_options(&args, &config);
    if options.access.is_open {
        warn(
            "other machines can reach it: whoever does can read all caught mail and send without a key. Use --listen only \
             in a network of your own, such as that of a container",
            args.json,
        );
    }
    let service = Service::start(&config, Some(&options)).await.map_err(|error| {
        if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::AddrInUse) {
            error.context(
                "`postroad dev --http-port 0 --plain-port 0 --smtp-port 0 --smtps-port 0 --bounce-port 0` takes any free ports",
            )
        } else {
            error
        }
    })?;
    let setup = set_up(&config, &service.app, args.api_key).await?;
    let address = service.http_address.expect("dev listens on HTTP");
    for (wanted, got) in moved_ports(&config, &service) {
        warn(&format!("port {wanted} is taken by another program: using {got} instead"), args.json);
    }
    let url = options.url(address);
    let smtp_host = options.host.clone().unwrap_or_else(|| address.ip().to_string());
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
            "smtp": service.smtp_addresses.client_settings(&smtp_host),
        });
        print(&ready.to_string());
    } else {
        let data_dir = config.data_dir.display().to_string();
        let inbox = service.has_inbox();
        let addresses = ServiceAddresses { url: &url, smtp_host: &smtp_host, smtp: service.smtp_addresses };
        print(&welcome(&addresses, inbox, &setup, &data_dir));
    }
    drop(setup);
    until_stopped(service, &mut signals).await;
    Ok(())
}

/// Who may call the service, and the host names by which it is reached.
fn dev_options(args: &DevArgs, config: &Config) -> DevOptions {
    let is_open = config.http.listen.is_some_and(|address| !address.ip().is_loopback());
    let is_unspecified = config.http.listen.is_some_and(|address| address.ip().is_unspecified());
    let tracking_host = config.tracking.base_url.as_deref().map(|url| base_host(url).to_owned());
    let hosts = args.hosts.iter().cloned().chain([config.hostname.to_string()]).chain(tracking_host);
    let loopback = is_unspecified.then(|| Ipv4Addr::LOCALHOST.to_string());
    DevOptions {
        access: DevAccess { is_open, hosts: hosts.collect() },
        host: args.hosts.first().cloned().or(loopback),
        any_from: args.any_from,
    }
}

/// Ports that were taken, and the ports used instead.
fn moved_ports(config: &Config, service: &Service) -> Vec<(u16, u16)> {
    let (smtp, got) = (&config.smtp, service.smtp_addresses);
    let listeners = [
        (config.http.listen, service.http_address),
        (smtp.open_listen, got.open),
        (smtp.starttls_listen, got.starttls),
        (smtp.tls_listen, got.tls),
        (smtp.bounce_listen, got.bounce),
    ];
    let ports = listeners.into_iter().filter_map(|(wanted, got)| Some((wanted?.port(), got?.port())));
    ports.filter(|(wanted, got)| *wanted != 0 && wanted != got).collect()
}

/// Creates new keys and revokes those of the previous start on this folder. With `api_key`, that key is used instead of
/// a new API key; later starts do not revoke it.
async fn set_up(config: &Config, app: &App, api_key: Option<String>) -> anyhow::Result<DevSetup> {
    if matches!(config.database, Database::Sqlite { .. }) {
        return Ok(app.dev_setup_with(DevSetupRequest { api_key, previous: None }).await?);
    }
    // Other processes may use the same PostgreSQL database with keys of their own, so a file in the data folder
    // records the ids of ours.
    let file = config.data_dir.join("dev-key-id");
    let previous = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
    // Not `None`, which would revoke the keys of all starts, those of the other processes too.
    let previous = Some(previous.unwrap_or_default());
    let setup = app.dev_setup_with(DevSetupRequest { api_key, previous }).await?;
    let mut options = std::fs::File::options();
    let opened = options.create(true).truncate(true).write(true).mode(0o600).open(&file);
    opened
        .and_then(|mut file| file.write_all(setup.key_ids.to_string().as_bytes()))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(setup)
}

/// Configuration from defaults, environment and command line. Other machines can reach the service only with
/// `--listen`.
fn dev_config(args: &DevArgs) -> anyhow::Result<Config> {
    let mut config = load_config(None, args.json)?;
    if let Some(data_dir) = &args.data_dir {
        config.data_dir.clone_from(data_dir);
    }
    let ip = args.listen.unwrap_or(Ipv4Addr::LOCALHOST.into());
    let default_address = SocketAddr::from((Ipv4Addr::LOCALHOST, HTTP_PORT));
    match (args.http_port, config.http.listen) {
        (Some(port), _) => config.http.listen = Some(SocketAddr::from((ip, port))),
        (None, Some(address)) if address != default_address => {}
        (None, _) => {
            config.http.listen = Some(SocketAddr::from((ip, HTTP_PORT)));
            config.http.may_use_next_port = true;
        }
    }
    let is_local = config.http.listen.is_some_and(|address| address.ip().is_loopback());
    anyhow::ensure!(
        is_local || args.listen.is_some(),
        "`postroad dev` is for this machine only: set POSTROAD_HTTP_LISTEN to a 127.0.0.1 address, or use --listen"
    );
    config.http.https_listen = None;
    set_smtp(&mut config, args, ip);
    anyhow::ensure!(
        args.listen.is_some() || config.smtp.listeners().all(|address| address.ip().is_loopback()),
        "`postroad dev` is for this machine only: set POSTROAD_SMTP_* to 127.0.0.1 addresses, or use --listen"
    );
    Ok(config)
}

/// Turns on the SMTP listeners. A listener without a configured address gets its usual port, or the next free port if
/// the usual one is taken.
fn set_smtp(config: &mut Config, args: &DevArgs, ip: IpAddr) {
    let at_port = |port: u16| SocketAddr::from((ip, port));
    let smtp = &mut config.smtp;
    // A configured `plain_listen` accepts mail only from networks that a key is bound to. In this case the open
    // listener, which accepts mail from everybody, starts only if `--plain-port` is given.
    if smtp.plain_listen.is_none() || args.plain_port.is_some() {
        smtp.open_listen = Some(at_port(args.plain_port.unwrap_or(PLAIN_PORT)));
        if args.plain_port.is_none() {
            smtp.preferred_addresses.push(at_port(PLAIN_PORT));
        }
    }
    for (listen, chosen_port, default_port) in [
        (&mut smtp.starttls_listen, args.smtp_port, STARTTLS_PORT),
        (&mut smtp.tls_listen, args.smtps_port, TLS_PORT),
        (&mut smtp.bounce_listen, args.bounce_port, BOUNCE_PORT),
    ] {
        *listen = chosen_port.map(at_port).or(*listen);
        if listen.is_none() {
            *listen = Some(at_port(default_port));
            smtp.preferred_addresses.push(at_port(default_port));
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

/// Addresses under which the service is reached.
struct ServiceAddresses<'a> {
    url: &'a str,
    smtp_host: &'a str,
    smtp: SmtpAddresses,
}

fn welcome(addresses: &ServiceAddresses<'_>, has_inbox: bool, setup: &DevSetup, data_dir: &str) -> String {
    let ServiceAddresses { url, smtp_host: host, smtp } = addresses;
    let port = |address: Option<SocketAddr>| address.map_or(0, |address| address.port());
    let (starttls_port, tls_port) = (port(smtp.starttls), port(smtp.tls));
    let plain = match smtp.open {
        Some(address) => format!("{host} port {} without login, from any sender; or", address.port()),
        None => "with a login:".to_owned(),
    };
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
        r#"Postroad is running. Stop it with Ctrl-C; data stays in {data_dir}.

  Portal      {sign_in_url}
              signs you in, as often as you like while this runs
  Inbox       {inbox}
  API         {url}/api/v1
  API docs    {url}/api/v1/openapi.json
  API key     {api_key}
  API secret  {api_secret}
  Account     {account_api_key} in the header X-Account-API-Key
  Operator    {operator_api_key} in the header X-Operator-API-Key
  SMTP        {plain}
              {host} port {starttls_port} with STARTTLS, or port {tls_port} with TLS (self-signed certificate);
              user = API key, password = API secret
  Credential  {credential_name} (server {server_name}); the keys are shown only now; the next start creates
              new ones and revokes these, except a key of --api-key
  Domain      {domain} (verified: send from any address at it)

Send a first message:

  curl {url}/api/v1/send/message \
    -H 'X-Server-API-Key: {api_key}' \
    -H 'Content-Type: application/json' \
    -d '{{"to": ["you@example.com"], "from": "hello@{domain}", "subject": "First", "plain_body": "It works."}}'
"#
    )
}
