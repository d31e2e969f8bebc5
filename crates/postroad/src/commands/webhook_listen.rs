//! `postroad webhook listen`: prints the events of a server as they come. The command polls the event feed, so the
//! service needs no way to reach this machine.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use ipnet::{Ipv4Net, Ipv6Net};
use postroad_model::WebhookUrl;
use postroad_net::client_tls::ClientTls;
use postroad_net::guarded_http::{GuardedHttp, GuardedHttpSettings};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::load_config;
use crate::cli::ListenArgs;
use crate::control::{self, Request};
use crate::feed::FeedCommand;
use crate::terminal::{self, print, remark};

/// Longest time that the service waits for events before it answers a poll.
const POLL_WAIT_SECS: u64 = 20;
/// Pause after an error; the service may be restarting.
const ERROR_PAUSE: Duration = Duration::from_secs(1);
/// Minimum time between the starts of two polls if the first returns no events.
const EMPTY_POLL_INTERVAL_MIN: Duration = Duration::from_millis(500);
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Source of events: the HTTP API of a service, or the control socket of the service that runs on a data folder.
enum Source {
    Http { http: GuardedHttp, url: WebhookUrl, key: HeaderValue },
    Folder { data_dir: PathBuf, server: Option<String> },
}

/// Some events, and the cursor to continue with.
struct Page {
    items: Vec<Value>,
    next_cursor: String,
}

pub(crate) async fn run(args: ListenArgs) -> anyhow::Result<()> {
    let http = unrestricted_http_client(args.json)?;
    let forward_to = args.forward_to.as_deref().map(WebhookUrl::parse).transpose().context("--forward-to")?;
    let source = choose_source(&args, http.clone())?;
    // An error on the first poll is the caller's mistake; later errors may be temporary.
    let mut cursor = source.poll(&args.types, None).await?.next_cursor;
    remark("listening for events; stop with Ctrl-C");
    loop {
        let begun = Instant::now();
        match source.poll(&args.types, Some(&cursor)).await {
            Ok(page) => {
                if page.items.is_empty() {
                    tokio::time::sleep_until(begun + EMPTY_POLL_INTERVAL_MIN).await;
                }
                for event in &page.items {
                    print(&if args.json { event.to_string() } else { event_line(event) });
                    if let Some(url) = &forward_to {
                        forward(&http, url, event).await;
                    }
                }
                cursor = page.next_cursor;
            }
            Err(error) => {
                remark(&format!("{error:#}; trying again"));
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }
}

fn choose_source(args: &ListenArgs, http: GuardedHttp) -> anyhow::Result<Source> {
    if let Some(url) = &args.url {
        let key = args.key.clone().or_else(|| std::env::var("POSTROAD_API_KEY").ok());
        let key = key.context("--url needs --key, or the key in POSTROAD_API_KEY")?;
        let url = WebhookUrl::parse(&format!("{}/api/v1/events/list", url.trim_end_matches('/')));
        let mut key = HeaderValue::from_str(&key).context("--key: this is not an API key")?;
        key.set_sensitive(true);
        return Ok(Source::Http { http, url: url.context("--url")?, key });
    }
    let data_dir = match &args.data_dir {
        Some(data_dir) => data_dir.clone(),
        None => load_config(None, args.json)?.data_dir,
    };
    Ok(Source::Folder { data_dir, server: args.server.clone() })
}

/// HTTP client that may connect to any address, because the user chose the URL.
fn unrestricted_http_client(json: bool) -> anyhow::Result<GuardedHttp> {
    let everything = [Ipv4Net::default().into(), Ipv6Net::default().into()];
    let settings = GuardedHttpSettings {
        allowed: everything.to_vec(),
        exchange_timeout: Duration::from_secs(POLL_WAIT_SECS + 10),
        answer_bytes_max: ANSWER_BYTES_MAX,
        ..GuardedHttpSettings::default()
    };
    Ok(GuardedHttp::new(load_config(None, json)?.dns()?, ClientTls::new(None)?.verified(), settings))
}

impl Source {
    /// Reads the next events; without a cursor, returns only the current position of the feed.
    async fn poll(&self, types: &[String], cursor: Option<&str>) -> anyhow::Result<Page> {
        match self {
            Self::Http { http, url, key } => {
                let wait = if cursor.is_some() { POLL_WAIT_SECS } else { 0 };
                let mut request = json!({
                    "since_cursor": cursor.unwrap_or("latest"),
                    "wait_s": wait,
                    "limit": 500,
                });
                if !types.is_empty() {
                    request["types"] = json!(types);
                }
                let mut headers = HeaderMap::new();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                headers.insert("x-server-api-key", key.clone());
                let answer = http.post(url, &headers, &Bytes::from(request.to_string())).await?;
                parse_envelope_page(&answer.body)
            }
            Self::Folder { data_dir, server } => {
                let command = FeedCommand {
                    feed_of: server.clone(),
                    since_cursor: cursor.map(str::to_owned),
                    types: types.to_vec(),
                    wait: cursor.is_some(),
                };
                let answer = control::send(data_dir, &Request::Feed(command)).await?;
                let mut answer = answer.with_context(|| {
                    format!(
                        "no service runs on {}; name a running one with --data-dir, or with --url and --key",
                        data_dir.display()
                    )
                })?;
                parse_page(answer["items"].take(), &answer["next_cursor"])
            }
        }
    }
}

fn parse_envelope_page(body: &[u8]) -> anyhow::Result<Page> {
    let mut envelope: Value =
        serde_json::from_slice(body).context("the answer is not that of a Postroad API")?;
    if envelope["status"] != "success" {
        bail!("the server says: {}", envelope["data"]["message"].as_str().unwrap_or("nothing"));
    }
    let next_cursor = envelope["flags"]["pagination"]["next_cursor"].take();
    parse_page(envelope["data"]["items"].take(), &next_cursor)
}

fn parse_page(items: Value, next_cursor: &Value) -> anyhow::Result<Page> {
    let (Value::Array(items), Some(next_cursor)) = (items, next_cursor.as_str()) else {
        bail!("the answer has no events; is it the same version of postroad?");
    };
    ensure!(!next_cursor.is_empty(), "the answer does not say where to go on");
    Ok(Page { items, next_cursor: next_cursor.to_owned() })
}

/// The event as one line: `time  type  message  recipient  details`.
fn event_line(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (data, message) = (&event["data"], &event["data"]["message"]);
    let details = [&data["details"], &data["url"], &data["webhook"]["reason"], &data["domain"]["name"]];
    let details = details.into_iter().find_map(Value::as_str).unwrap_or_default();
    let columns = [
        text(&event["timestamp"]),
        format!("{:<22}", text(&event["type"])),
        message["id"].as_i64().map(|id| id.to_string()).unwrap_or_default(),
        text(&message["to"]),
        details.to_owned(),
    ];
    let columns: Vec<String> = columns.into_iter().filter(|column| !column.is_empty()).collect();
    terminal::one_line(columns.join("  ").trim_end())
}

async fn forward(http: &GuardedHttp, url: &WebhookUrl, event: &Value) {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(id) = event["id"].as_str().and_then(|id| HeaderValue::from_str(id).ok()) {
        headers.insert("webhook-id", id);
    }
    match http.post(url, &headers, &Bytes::from(event.to_string())).await {
        Ok(answer) if (200..300).contains(&answer.status) => {}
        Ok(answer) => remark(&format!("{url} answered {}", answer.status)),
        Err(error) => remark(&format!("{url}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_describes_the_event() {
        let event = json!({
            "type": "message.bounced",
            "timestamp": "2026-11-15T10:00:00Z",
            "data": {
                "message": { "id": 12, "to": "a@example.com" },
                "details": "No such \u{1b}[2Jmailbox\r\n",
            },
        });
        assert_eq!(
            event_line(&event),
            "2026-11-15T10:00:00Z  message.bounced         12  a@example.com  No such \u{1b}[2Jmailbox"
        );
    }
}
