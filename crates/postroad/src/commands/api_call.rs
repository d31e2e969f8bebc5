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

const DEFAULT_URL: &str = "http://127.0.0.1:8025";
const EXCHANGE_TIMEOUT: Duration = Duration::from_mins(1);
const ANSWER_BYTES_MAX: usize = 64 << 20;
const REQUEST_BYTES_MAX: u64 = 64 << 20;

/// URL and keys of a service, as `postroad dev --json` prints them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct Profile {
    url: Option<String>,
    api_key: Option<String>,
    account_api_key: Option<String>,
    operator_api_key: Option<String>,
}

impl Profile {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let read = || anyhow::Ok(serde_json::from_slice(&std::fs::read(path)?)?);
        read().with_context(|| format!("cannot read the profile {}", path.display()))
    }

    fn of_environment() -> Self {
        Self {
            url: variable("POSTROAD_URL"),
            api_key: variable("POSTROAD_API_KEY"),
            account_api_key: variable("POSTROAD_ACCOUNT_API_KEY"),
            operator_api_key: variable("POSTROAD_OPERATOR_API_KEY"),
        }
    }

    fn has_key(&self) -> bool {
        self.api_key.is_some() || self.account_api_key.is_some() || self.operator_api_key.is_some()
    }

    /// The first URL of these profiles, and all keys of the first profile that has any key. Keys of several profiles
    /// are never mixed: a key of another profile may have more rights, or belong to another service.
    fn first_of(profiles: &[Self]) -> Self {
        let keys = profiles.iter().find(|profile| profile.has_key()).cloned().unwrap_or_default();
        Self { url: profiles.iter().find_map(|profile| profile.url.clone()), ..keys }
    }
}

/// Calls the endpoint and prints the answer. Fails if the answer is not a success, or not JSON.
pub(crate) async fn run(args: ApiArgs) -> anyhow::Result<()> {
    let profile = choose_profile(&args)?;
    let url = profile.url.as_deref().unwrap_or(DEFAULT_URL);
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_' || c == '/';
    ensure!(
        args.endpoint.split('/').count() == 2 && args.endpoint.chars().all(is_name),
        "`{}` is not an endpoint: use GROUP/ACTION, such as servers/list",
        args.endpoint
    );
    let url = WebhookUrl::parse(&format!("{}/api/v1/{}", url.trim_end_matches('/'), args.endpoint));
    let request = if args.request == "-" { read_input()? } else { args.request.clone() };
    let headers = request_headers(&profile)?;
    let answer =
        unrestricted_http_client()?.post(&url.context("--url")?, &headers, &Bytes::from(request)).await?;
    let envelope: Value = serde_json::from_slice(&answer.body).context("the answer is not JSON")?;
    print(&serde_json::to_string_pretty(&envelope).context("the answer is not JSON")?);
    if envelope["status"] != "success" {
        bail!("{}", envelope["data"]["message"].as_str().unwrap_or("the call failed"));
    }
    Ok(())
}

/// Precedence: `--url` and `--profile`, then the variables with URL and keys, then the profile that `POSTROAD_PROFILE`
/// names.
fn choose_profile(args: &ApiArgs) -> anyhow::Result<Profile> {
    let mut profiles = vec![Profile { url: args.url.clone(), ..Profile::default() }];
    if let Some(path) = args.profile.as_deref() {
        let profile = Profile::read(path)?;
        // Without this check, the keys of the environment would go to the profile's service.
        ensure!(profile.has_key(), "the profile {} has no key", path.display());
        // Without this check, the profile's keys would go to the service of the environment.
        ensure!(
            profile.url.is_some() || args.url.is_some(),
            "the profile {} has no `url`: add it, or use --url",
            path.display()
        );
        profiles.push(profile);
    }
    profiles.push(Profile::of_environment());
    let known = Profile::first_of(&profiles);
    // The file is read only if URL or keys are still missing: a file that is not needed may be unreadable.
    if args.profile.is_none()
        && (known.url.is_none() || !known.has_key())
        && let Some(path) = variable("POSTROAD_PROFILE")
    {
        profiles.push(Profile::read(Path::new(&path))?);
    }
    Ok(Profile::first_of(&profiles))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn read_input() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().take(REQUEST_BYTES_MAX + 1).read_to_string(&mut text).context("standard input")?;
    ensure!(
        text.len() as u64 <= REQUEST_BYTES_MAX,
        "standard input has more than {} MiB",
        REQUEST_BYTES_MAX >> 20
    );
    Ok(text)
}

/// Headers with all keys of the profile; the service uses the key that the endpoint needs.
fn request_headers(profile: &Profile) -> anyhow::Result<HeaderMap> {
    ensure!(
        profile.has_key(),
        "there is no key: set POSTROAD_API_KEY, POSTROAD_ACCOUNT_API_KEY or POSTROAD_OPERATOR_API_KEY, or give --profile"
    );
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (header, key) in [
        ("x-server-api-key", &profile.api_key),
        ("x-account-api-key", &profile.account_api_key),
        ("x-operator-api-key", &profile.operator_api_key),
    ] {
        let Some(key) = key else { continue };
        let key = HeaderValue::from_str(key);
        let mut key = key.with_context(|| format!("the value for {header} cannot be an API key"))?;
        key.set_sensitive(true);
        headers.insert(header, key);
    }
    Ok(headers)
}

/// HTTP client that may connect to any address, because the user chose the URL.
fn unrestricted_http_client() -> anyhow::Result<GuardedHttp> {
    let everything = [Ipv4Net::default().into(), Ipv6Net::default().into()];
    let settings = GuardedHttpSettings {
        allowed: everything.to_vec(),
        exchange_timeout: EXCHANGE_TIMEOUT,
        answer_bytes_max: ANSWER_BYTES_MAX,
        ..GuardedHttpSettings::default()
    };
    Ok(GuardedHttp::new(load_config(None, true)?.dns()?, ClientTls::new(None)?.verified(), settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_first_profile_that_has_any() {
        let with_account_key =
            |key: &str| Profile { account_api_key: Some(key.to_owned()), ..Profile::default() };
        let named = Profile { url: Some("https://named.example".to_owned()), ..with_account_key("named") };
        let environment = with_account_key("environment");
        let fallback = Profile { operator_api_key: Some("fallback".to_owned()), ..named.clone() };
        let keys = |profiles: &[Profile]| {
            let chosen = Profile::first_of(profiles);
            (chosen.account_api_key, chosen.operator_api_key)
        };
        let only = |key: &str| (Some(key.to_owned()), None);
        assert_eq!(keys(&[named.clone(), environment.clone()]), only("named"));
        assert_eq!(
            keys(&[environment.clone(), fallback.clone()]),
            only("environment"),
            "no key of another profile"
        );
        assert_eq!(Profile::first_of(&[environment, fallback.clone()]).url, fallback.url);
        assert_eq!(Profile::first_of(&[Profile::default(), fallback.clone()]), fallback);
        assert!(!Profile::first_of(&[Profile::default()]).has_key());
    }
}
