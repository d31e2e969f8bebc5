//! Click and open tracking as recipients see it: tracked links, their effects, and attempts to misuse them.

mod bots;
mod clicks;
mod customer_hosts;
mod hosts;
mod outage;
mod settings;
mod simulator;
mod unsubscribing;

use std::time::Duration;

use postroad_testkit::eventually;
use postroad_testkit::http::{Method, Reply};
use serde_json::{Value, json};

use crate::delivery::inbox::wait_for_mail_to;
use crate::world::{World, good_but};

/// User agent of a person.
pub(crate) const FIREFOX: (&str, &str) =
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Firefox/115.0");
/// Longer than the time after a delivery in which every click counts as a scanner's.
const PAST_SCANNER_WINDOW: Duration = Duration::from_millis(1_100);

/// A message as its recipient got it.
pub(crate) struct ReceivedMail {
    pub(crate) id: i64,
    pub(crate) raw: Vec<u8>,
    pub(crate) html: String,
    pub(crate) plain: String,
}

pub(crate) fn tracked_html(to: &str, html: &str) -> Value {
    good_but(json!({"to": [to], "html_body": html, "track": {"opens": true, "clicks": true}}))
}

/// Sends to one address and waits until the message is delivered.
pub(crate) async fn send_and_receive(world: &World, body: &Value) -> ReceivedMail {
    let to = body["to"][0].as_str().unwrap().to_owned();
    let id = world.accepted_id(body).await;
    world.until_status(id, "Sent").await;
    receive(world, id, &to).await
}

/// Waits until the message is in the inbox of `postroad dev`.
pub(crate) async fn receive(world: &World, id: i64, to: &str) -> ReceivedMail {
    let caught = wait_for_mail_to(world, to).await;
    let path = format!("/dev/messages/{}/raw", caught["id"]);
    let raw = world.client.get(&path).await.unwrap().body.to_vec();
    let view = postroad_mail::view(&raw);
    let (html, plain) = (view.html_body.unwrap_or_default(), view.plain_body.unwrap_or_default());
    ReceivedMail { id, raw, html, plain }
}

impl ReceivedMail {
    /// Paths of the tracked links of one kind in the HTML body, in order: `/c/` for clicks, `/o/` for opens.
    pub(crate) fn paths(&self, kind: &str) -> Vec<String> {
        paths_in(&self.html, kind)
    }
}

pub(crate) fn paths_in(text: &str, kind: &str) -> Vec<String> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.match_indices(kind)
        .map(|(at, _)| {
            let token = &text[at + kind.len()..];
            format!("{kind}{}", &token[..token.find(|c| !is_token(c)).unwrap_or(token.len())])
        })
        // Tokens are long: a short match belongs to another URL.
        .filter(|path| path.len() > 20)
        .collect()
}

pub(crate) async fn fetch(world: &World, method: Method, path: &str, headers: &[(&str, &str)]) -> Reply {
    world.client.request(method, path, headers, Vec::new().into()).await.expect("the service answers")
}

/// Opens a link as a person's browser does.
pub(crate) async fn open_in_browser(world: &World, path: &str) -> Reply {
    fetch(world, Method::GET, path, &[FIREFOX]).await
}

/// Waits until clicks no longer count as those of a scanner.
pub(crate) async fn wait_past_scanner_window() {
    tokio::time::sleep(PAST_SCANNER_WINDOW).await;
}

/// Waits until the message has at least this many loads and clicks; returns its activity.
pub(crate) async fn until_activity(world: &World, id: i64, loads: usize, clicks: usize) -> Value {
    eventually(async || {
        let activity = world.expanded(id).await["activity_entries"].take();
        let count = |name: &str| activity[name].as_array().unwrap().len();
        for entry in ["loads", "clicks"].into_iter().flat_map(|name| activity[name].as_array().unwrap()) {
            let timestamp = entry["timestamp"].as_str().unwrap();
            let decimals = timestamp.split_once('.').map(|(_, decimals)| decimals.len());
            assert!(timestamp.ends_with('Z') && decimals == Some(4), "three decimals and Z: {timestamp}");
        }
        if count("loads") >= loads && count("clicks") >= clicks {
            return Ok(activity);
        }
        let log = world.daemon.stderr_text();
        Err(format!("not {loads} loads and {clicks} clicks: {activity:#}\n{log}"))
    })
    .await
}
