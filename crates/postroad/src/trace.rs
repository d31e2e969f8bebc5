//! Executes `postroad trace` in the running service, which knows why a message waits. Without a running service, the
//! command executes it itself on the store.

use std::time::Duration;

use anyhow::bail;
use postroad_app::{App, LocatedMessages, LookupError, TimelineItem, TimelineKind};
use postroad_delivery::QueueAdmin;
use postroad_delivery::queue_admin::Reader;
use postroad_model::{Clock as _, MessageId, ServerId, SystemClock};
use serde_json::{Value, json};

/// Time to look for a message whose server is not known.
const LOCATE_TIME_MAX: Duration = Duration::from_secs(20);

/// Returns one object for each message with this id, token or Message-ID: its id, token, status, recipient and
/// timeline.
pub(crate) async fn execute(app: &App, queue: &QueueAdmin, message: &str) -> anyhow::Result<Value> {
    // With this key, `app` finds the server of a Message-ID that this installation created.
    app.set_message_id_key(&app.installation().await?.return_path_secret);
    let LocatedMessages { found, is_cut } = app.locate_messages(message, LOCATE_TIME_MAX).await?;
    if found.is_empty() && is_cut {
        bail!(
            "{message:?} was not found within {} s, and not every server was searched: name the message by its id, \
             as the answer to the send, the portal and `messages/search` show it",
            LOCATE_TIME_MAX.as_secs()
        );
    }
    if found.is_empty() {
        bail!("no message has the id, token or Message-ID {message:?}");
    }
    let mut messages = Vec::new();
    for (server_id, id) in found {
        messages.push(describe(app, queue, server_id, id).await?);
    }
    Ok(Value::Array(messages))
}

async fn describe(
    app: &App,
    queue: &QueueAdmin,
    server_id: ServerId,
    id: MessageId,
) -> anyhow::Result<Value> {
    let timeline = match app.message_timeline(server_id, id).await {
        Ok(timeline) => timeline,
        Err(LookupError::NotFound) => bail!("the message {id} was removed just now"),
        Err(LookupError::Store(error)) => return Err(error.into()),
    };
    let (message, mut items) = (timeline.message, timeline.items);
    let now = SystemClock.now();
    if message.status.is_queued()
        && let Some(waiting) = queue.find(id, Reader::Operator, now).await?
    {
        items.push(TimelineItem { at: now, kind: TimelineKind::Waiting, text: waiting.why, data: json!({}) });
    }
    let shown = |item: TimelineItem| json!({ "at": item.at.to_rfc3339_millis(), "kind": item.kind.as_str(), "text": item.text, "data": item.data });
    Ok(json!({
        "id": id.0,
        "server_id": server_id.0,
        "token": message.token.0,
        "status": message.status,
        "rcpt_to": message.rcpt_to,
        "subject": message.send.subject,
        "items": items.into_iter().map(shown).collect::<Vec<Value>>(),
    }))
}
