//! `postroad dev`: a first success within a minute. Loopback only, no configuration, a key and a domain at hand.

use std::net::{Ipv4Addr, SocketAddr};

use postroad_app::DevSetup;
use serde_json::json;

use super::serve::until_stopped;
use super::{load_config, print};
use crate::cli::{DevArgs, LogFormat};
use crate::config::Config;
use crate::logging;
use crate::service::Service;
use crate::signals::Signals;

pub(crate) async fn run(args: DevArgs, log_format: Option<LogFormat>) -> anyhow::Result<()> {
    let config = config(&args)?;
    logging::start(log_format, config.log.format);
    let mut signals = Signals::listen()?;
    let service = Service::start(&config, true).await.map_err(|error| {
        if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::AddrInUse) {
            error.context("`postroad dev --http-port 0` takes any free port")
        } else {
            error
        }
    })?;
    let setup = service.app.dev_setup().await?;
    let address = service.http_address.expect("dev listens on HTTP");
    let url = format!("http://{address}");
    if args.json {
        let ready = json!({
            "url": url,
            "api_key": setup.api_key,
            "api_secret": setup.api_secret,
            "domain": setup.domain,
            "pid": std::process::id(),
        });
        print(&ready.to_string());
    } else {
        print(&welcome(&url, &setup, &config.data_dir.display().to_string()));
    }
    drop(setup);
    until_stopped(service, &mut signals).await;
    Ok(())
}

/// The defaults and the environment, with the command line on top; never beyond this machine.
fn config(args: &DevArgs) -> anyhow::Result<Config> {
    let mut config = load_config(None)?;
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
    Ok(config)
}

fn welcome(url: &str, setup: &DevSetup, data_dir: &str) -> String {
    let DevSetup { api_key, api_secret, domain, server_name, credential_name } = setup;
    format!(
        r#"Postroad is running on this machine only. Stop it with Ctrl-C; data stays in {data_dir}.

  API         {url}
  API docs    {url}/api/v1/openapi.json
  API key     {api_key}
  API secret  {api_secret}
  Credential  {credential_name} (server {server_name}); the key is shown this once, the next start makes another
  Domain      {domain} (verified: send from any address at it)

Send a first message:

  curl {url}/api/v1/send/message \
    -H 'X-Server-API-Key: {api_key}' \
    -H 'Content-Type: application/json' \
    -d '{{"to": ["you@example.com"], "from": "hello@{domain}", "subject": "First", "plain_body": "It works."}}'
"#
    )
}
