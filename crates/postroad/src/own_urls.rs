//! URLs under which this service is reached, as far as it knows. Webhooks may post to its request inspectors at these
//! URLs, even if the address is private.

use std::net::{Ipv4Addr, SocketAddr};

use postroad_model::WebhookUrl;
use postroad_net::guarded_http::TokenUrls;

use crate::config::Config;

/// Base URLs, in order of preference: the configured URL, the URLs of `dev`, the URL of the plain listener, the
/// default URL. `plain` is the address of the listener without TLS, if that listener serves the portal. `dev` is the
/// URL and the host names of `postroad dev`; `None` for `serve`.
pub(crate) fn own_urls(
    config: &Config,
    plain: Option<SocketAddr>,
    dev: Option<(String, &[String])>,
) -> Vec<String> {
    let mut urls: Vec<String> = config.portal.base_url.iter().cloned().collect();
    if let Some(address) = plain {
        if let Some((url, hosts)) = dev {
            urls.push(url);
            let names = hosts.iter().map(String::as_str).chain(["localhost"]);
            urls.extend(names.map(|name| format!("http://{name}:{}", address.port())));
        }
        let local_address = if address.ip().is_unspecified() {
            SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()))
        } else {
            address
        };
        urls.push(format!("http://{local_address}"));
    }
    urls.push(config.portal_base());
    urls
}

/// The URLs of request inspectors below these base URLs.
pub(crate) fn inspector_urls(base_urls: &[String]) -> Vec<TokenUrls> {
    let parsed = base_urls.iter().filter_map(|base| WebhookUrl::parse(&format!("{base}/inspect/")).ok());
    parsed.map(|prefix| TokenUrls::below(&prefix)).collect()
}
