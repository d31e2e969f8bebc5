//! Everything that happened to a message, in order: from its events, its delivery records with their SMTP conversations, and
//! the attempts to post its events to webhooks.

mod attempt;
mod fact;
mod locate;

use postroad_model::{EventId, MessageId, ServerId, Timestamp};
use postroad_store::{Message, StoreError};
use serde_json::{Value, json};

use crate::{App, LookupError};

/// Items of one timeline; a message that is opened every minute for years has no more.
const ITEMS_MAX: usize = 1_000;
/// Events whose webhook attempts are listed.
const EVENTS_MAX: usize = 500;
const WEBHOOK_ATTEMPTS_MAX: usize = 500;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineItem {
    pub at: Timestamp,
    pub kind: &'static str,
    /// One sentence.
    pub text: String,
    pub data: Value,
}

/// A message and what happened to it.
#[derive(Debug)]
pub struct Timeline {
    pub message: Message,
    pub items: Vec<TimelineItem>,
}

impl App {
    pub async fn message_timeline(
        &self,
        server_id: ServerId,
        id: MessageId,
    ) -> Result<Timeline, LookupError> {
        let store = &self.inner.store;
        let message = store.find_message(server_id, id).await?.ok_or(LookupError::NotFound)?;
        let mut events = store.list_events(server_id, id).await?;
        events.truncate(ITEMS_MAX);
        let mut items = vec![accepted(&message)];
        items.extend(events.iter().filter_map(fact::of_event));
        let mut transcripts = store.list_transcripts(server_id, id).await?;
        for delivery in store.list_deliveries(server_id, id).await? {
            let place = transcripts.iter().position(|(of, _)| *of == delivery.id);
            let transcript = place.map(|place| transcripts.swap_remove(place).1);
            items.extend(attempt::of_delivery(delivery, transcript.as_deref()));
        }
        let event_ids: Vec<EventId> = events.iter().take(EVENTS_MAX).map(|event| event.id).collect();
        items.extend(self.webhook_items(server_id, event_ids).await?);
        // Stable: things of the same moment stay in the order in which they follow from each other.
        items.sort_by_key(|item| item.at);
        items.truncate(ITEMS_MAX);
        Ok(Timeline { message, items })
    }

    async fn webhook_items(
        &self,
        server_id: ServerId,
        events: Vec<EventId>,
    ) -> Result<Vec<TimelineItem>, StoreError> {
        let store = &self.inner.store;
        let attempts = store.list_attempts_of_events(server_id, events, WEBHOOK_ATTEMPTS_MAX).await?;
        Ok(attempts.into_iter().map(fact::of_webhook_attempt).collect())
    }
}

/// The send itself; events of old messages may be gone.
fn accepted(message: &Message) -> TimelineItem {
    let send = &message.send;
    let by = send.options.protocol.as_str();
    TimelineItem {
        at: send.created_at,
        kind: "accepted",
        text: format!("Accepted by {by} for {}: {} bytes", message.rcpt_to, send.size),
        data: json!({
            "rcpt_to": message.rcpt_to,
            "mail_from": send.mail_from,
            "subject": send.subject,
            "message_id": send.message_id,
            "tag": send.tag,
            "size": send.size,
            "tls": send.received_with_ssl,
            "test": send.test,
            "send_at": send.options.send_at.map(Timestamp::to_rfc3339),
            "expires_at": send.options.expires_at.map(Timestamp::to_rfc3339),
        }),
    }
}
