//! Feed command of `postroad webhook listen` on the control socket: returns the next events of a server.

use std::time::Duration;

use anyhow::Context;
use postroad_app::{App, FeedRequest, FeedStart};
use postroad_events::body::standard_body;
use postroad_model::{EventCursor, EventKind, EventSet};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const EVENTS_MAX: usize = 500;
/// Longest wait for events; shorter than the timeout of the control socket.
const WAIT_MAX: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FeedCommand {
    /// Server: `NAME`, `ACCOUNT/NAME` or id; the only server if left out.
    pub(crate) feed_of: Option<String>,
    /// Position to continue from; `None` for events from now on.
    pub(crate) since_cursor: Option<String>,
    pub(crate) types: Vec<String>,
    /// Whether to wait for events; false returns at once, to learn the current position of the feed.
    pub(crate) wait: bool,
}

/// Returns `{"items", "next_cursor"}`.
pub(crate) async fn execute(app: &App, command: FeedCommand) -> anyhow::Result<Value> {
    let server_id = match &command.feed_of {
        Some(name) => app.find_server_id(name).await?,
        None => app.only_server_id().await?,
    };
    let start = match &command.since_cursor {
        Some(text) => {
            FeedStart::After(EventCursor::parse(text).with_context(|| format!("`{text}` is not a cursor"))?)
        }
        None => FeedStart::Latest,
    };
    let request = FeedRequest {
        start,
        kinds: parse_kinds(&command.types)?,
        message_id: None,
        limit: EVENTS_MAX,
        wait: if command.wait { WAIT_MAX } else { Duration::ZERO },
    };
    let page = app.list_events(server_id, request).await?;
    let items: Vec<Value> = page.events.iter().map(standard_body).collect();
    Ok(json!({ "items": items, "next_cursor": page.next.to_string() }))
}

fn parse_kinds(names: &[String]) -> anyhow::Result<EventSet> {
    if names.is_empty() {
        return Ok(EventSet::ALL);
    }
    let read = |name: &String| EventKind::parse(name).with_context(|| format!("there is no event `{name}`"));
    names.iter().map(read).collect()
}
