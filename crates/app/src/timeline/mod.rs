//! Timeline of a message, built from its send, its events, its reschedules, its delivery records with their SMTP
//! transcripts, and the webhook attempts for its events. Also finds messages for `postroad trace`.

mod attempt;
mod events;
mod kind;
mod locate;
mod reschedule;
mod rule;
mod webhook_attempt;

use std::collections::HashMap;

use postroad_model::{DeliveryId, EventId, MessageId, ServerId, Timestamp};
use postroad_store::{Message, StoreError};
use serde_json::{Value, json};

pub use events::MessageEvent;
pub use kind::TimelineKind;
pub use locate::LocatedMessages;
pub use rule::refusal_rule;

use crate::{App, LookupError};

/// Maximum number of items of one timeline, for messages that are opened again and again.
const ITEMS_MAX: usize = 1_000;
/// Number of newest events whose webhook attempts are read; also the maximum number of events that a message's page
/// lists.
const WEBHOOK_EVENTS_MAX: usize = 500;
const WEBHOOK_ATTEMPTS_MAX: usize = 500;

/// One item of a timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineItem {
    pub at: Timestamp,
    pub kind: TimelineKind,
    /// A sentence.
    pub text: String,
    pub data: Value,
}

/// A message with its timeline.
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
        events.drain(..events.len().saturating_sub(ITEMS_MAX));
        let mut items = vec![acceptance_item(&message)];
        items.extend(events.iter().filter_map(kind::of_event));
        items.extend(reschedule::of_reschedules(&message, store.list_reschedules(server_id, id).await?));
        let transcripts = store.list_newest_transcripts(server_id, id, ITEMS_MAX).await?;
        let transcripts: HashMap<DeliveryId, String> = transcripts.into_iter().collect();
        for delivery in store.list_newest_deliveries(server_id, id, ITEMS_MAX).await? {
            let transcript = transcripts.get(&delivery.id).map(String::as_str);
            items.extend(attempt::of_delivery(delivery, transcript));
        }
        let event_ids: Vec<EventId> =
            events.iter().rev().take(WEBHOOK_EVENTS_MAX).map(|event| event.id).collect();
        items.extend(self.webhook_items(server_id, event_ids).await?);
        Ok(Timeline { message, items: in_order(items) })
    }

    async fn webhook_items(
        &self,
        server_id: ServerId,
        events: Vec<EventId>,
    ) -> Result<Vec<TimelineItem>, StoreError> {
        let store = &self.inner.store;
        let attempts = store.list_attempts_of_events(server_id, events, WEBHOOK_ATTEMPTS_MAX).await?;
        Ok(attempts.into_iter().rev().map(webhook_attempt::of_webhook_attempt).collect())
    }
}

/// Sorts by time. A long timeline keeps its first item and the newest ones.
fn in_order(mut items: Vec<TimelineItem>) -> Vec<TimelineItem> {
    // The sort is stable: items with equal times stay in causal order.
    items.sort_by_key(|item| item.at);
    let left_out = items.len().saturating_sub(ITEMS_MAX);
    items.drain(1.min(items.len())..(1 + left_out).min(items.len()));
    items
}

/// The acceptance, from the send itself: events of old messages may have been deleted.
fn acceptance_item(message: &Message) -> TimelineItem {
    let send = &message.send;
    let by = send.options.protocol.as_str();
    TimelineItem {
        at: send.created_at,
        kind: TimelineKind::Accepted,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_timeline_has_its_beginning_and_its_newest_items() {
        let item = |at: i64| TimelineItem {
            at: Timestamp::from_micros(at),
            kind: TimelineKind::Opened,
            text: String::new(),
            data: Value::Null,
        };
        let moments = |count: i64| -> Vec<i64> {
            in_order((0..count).rev().map(item).collect()).iter().map(|item| item.at.as_micros()).collect()
        };
        assert_eq!(moments(0), [0; 0]);
        assert_eq!(moments(3), [0, 1, 2]);
        assert_eq!(moments(1_000), (0..1_000).collect::<Vec<_>>());
        let long = moments(1_500);
        assert_eq!((long.len(), long[0], long[1], long[999]), (1_000, 0, 501, 1_499));
    }
}
