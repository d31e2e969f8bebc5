//! `postroad serve`: runs the service until a signal stops it.

use serde_json::json;

use super::load_for_serving;
use crate::cli::{LogFormat, ServeArgs};
use crate::config::Config;
use crate::logging;
use crate::service::Service;
use crate::signals::{SignalAction, Signals};
use crate::terminal::{print, warn};

pub(crate) async fn run(args: ServeArgs, log_format: Option<LogFormat>) -> anyhow::Result<()> {
    let (config, warnings) = load_for_serving(args.config.config.as_deref())?;
    for warning in &warnings {
        warn(warning, args.json);
    }
    logging::start(log_format, config.log.format);
    let mut signals = Signals::listen()?;
    let service = Service::start(&config, None).await?;
    let set_up_url = service.app.set_up_url().await?;
    if args.json {
        let mut ready = json!({
            "http": service.http_address.map(|address| address.to_string()),
            "https": service.https_address.map(|address| address.to_string()),
            "smtp": service.smtp_addresses.to_json(),
            "pid": std::process::id(),
        });
        if let Some(url) = set_up_url {
            ready["set_up_url"] = url.into();
        }
        print(&ready.to_string());
    } else if let Some(url) = set_up_url {
        print(&format!("Nobody can sign in yet. To create the first person, open within a day:\n{url}"));
        if let Some(url) = link_without_https(&url, &config, &service) {
            print(&format!("HTTPS is off; in a browser on this machine, open:\n{url}"));
        }
    }
    until_stopped(service, &mut signals).await;
    Ok(())
}

/// The set-up link at the listener for plain HTTP. `None` if that listener is not on loopback, if the service has
/// HTTPS, or if a proxy probably has it: `portal.base_url` or `http.trusted_proxies` is set.
fn link_without_https(url: &str, config: &Config, service: &Service) -> Option<String> {
    let address = service.http_address.filter(|address| address.ip().is_loopback())?;
    let is_behind_proxy = config.portal.base_url.is_some() || !config.http.trusted_proxies.is_empty();
    if service.https_address.is_some() || is_behind_proxy {
        return None;
    }
    Some(format!("http://{address}{}", url.strip_prefix(&config.portal_base())?))
}

pub(super) async fn until_stopped(service: Service, signals: &mut Signals) {
    while let SignalAction::Reload = signals.next().await {
        service.reload();
    }
    service.stop().await;
}
