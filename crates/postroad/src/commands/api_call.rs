//! `postroad api GROUP/ACTION '{json}'`: calls any endpoint of a service and prints its answer.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use ipnet::{Ipv4Net, Ipv6Net};
use postroad_model::WebhookUrl;
use postroad_net::client_tls::ClientTls;
use postroad_net::guarded_http::{GuardedHttp, GuardedHttpSettings};
use serde::Deserialize;
use serde_json::Value;

use super::load_config;
use crate::cli::ApiArgs;
use crate::terminal::print;

const URL: &str = "http://127.0.0.1:8025";
const TIME_MAX: Duration = Duration::from_mins(1);
const ANSWER_BYTES_MAX: usize = 64 << 20;
const REQUEST_BYTES_MAX: u64 = 64 << 20;

/// URL and keys of a service; the ready line of `postroad dev` is one.
#[derive(Default, Deserialize)]
struct Profile {
    url: Option<String>,
    api_key: Option<String>,
    account_api_key: Option<String>,
    operator_api_key: Option<String>,
}

/// Fails if the call did; the answer is printed in any case.
pub(crate) async fn run(args: ApiArgs) -> anyhow::Result<()> {
    let profile = args.profile.as_deref().map(read_profile).transpose()?.unwrap_or_default();
    let url = args.url.as_ref().or(profile.url.as_ref()).map_or(URL, String::as_str);
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_' || c == '/';
    ensure!(
        args.endpoint.split('/').count() == 2 && args.endpoint.chars().all(is_name),
        "`{}` is no endpoint: use GROUP/ACTION, such as servers/list",
        args.endpoint
    );
    let url = WebhookUrl::parse(&format!("{}/api/v1/{}", url.trim_end_matches('/'), args.endpoint));
    let request = if args.request == "-" { read_input()? } else { args.request.clone() };
    let answer = http()?.post(&url.context("--url")?, &headers(profile)?, &Bytes::from(request)).await?;
    let envelope: Value = serde_json::from_slice(&answer.body).context("the answer is not JSON")?;
    print(&serde_json::to_string_pretty(&envelope).context("the answer is not JSON")?);
    if envelope["status"] != "success" {
        bail!("{}", envelope["data"]["message"].as_str().unwrap_or("the call failed"));
    }
    Ok(())
}

fn read_profile(path: &Path) -> anyhow::Result<Profile> {
    let read = || anyhow::Ok(serde_json::from_slice(&std::fs::read(path)?)?);
    read().with_context(|| format!("cannot read the profile {}", path.display()))
}

fn read_input() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().take(REQUEST_BYTES_MAX).read_to_string(&mut text).context("standard input")?;
    Ok(text)
}

/// All keys there are: the service takes the one that the endpoint needs.
fn headers(profile: Profile) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut has_key = false;
    for (header, variable, key) in [
        ("x-server-api-key", "POSTROAD_API_KEY", profile.api_key),
        ("x-account-api-key", "POSTROAD_ACCOUNT_API_KEY", profile.account_api_key),
        ("x-operator-api-key", "POSTROAD_OPERATOR_API_KEY", profile.operator_api_key),
    ] {
        let Some(key) = std::env::var(variable).ok().filter(|key| !key.is_empty()).or(key) else { continue };
        let mut key = HeaderValue::from_str(&key).with_context(|| format!("{variable} is no API key"))?;
        key.set_sensitive(true);
        headers.insert(header, key);
        has_key = true;
    }
    ensure!(has_key, "there is no key: set POSTROAD_API_KEY, POSTROAD_ACCOUNT_API_KEY or --profile");
    Ok(headers)
}

/// The user chose the URL, so any address is allowed.
fn http() -> anyhow::Result<GuardedHttp> {
    let everything = [Ipv4Net::default().into(), Ipv6Net::default().into()];
    let settings = GuardedHttpSettings {
        allowed: everything.to_vec(),
        exchange_timeout: TIME_MAX,
        answer_bytes_max: ANSWER_BYTES_MAX,
        ..GuardedHttpSettings::default()
    };
    Ok(GuardedHttp::new(load_config(None, true)?.dns()?, ClientTls::new(None)?.verified(), settings))
}
