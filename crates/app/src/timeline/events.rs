//! Events of a message as they are stored, each with the attempts to post it to webhooks.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{EventId, MessageId, ServerId};
use postroad_store::{Event, StoreError, WebhookAttempt};

use super::{WEBHOOK_ATTEMPTS_MAX, WEBHOOK_EVENTS_MAX};
use crate::App;

#[derive(Debug, Clone)]
pub struct MessageEvent {
    pub event: Event,
    /// Attempts to post the event, oldest first.
    pub attempts: Vec<WebhookAttempt>,
}

#[boxed_futures]
impl App {
    /// The newest events of a message, in the order of `seq`. Empty for an unknown message.
    pub async fn message_events(
        &self,
        server_id: ServerId,
        id: MessageId,
    ) -> Result<Vec<MessageEvent>, StoreError> {
        let store = &self.inner.store;
        let mut events = store.list_events(server_id, id).await?;
        events.drain(..events.len().saturating_sub(WEBHOOK_EVENTS_MAX));
        let ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
        let attempts = store.list_attempts_of_events(server_id, ids, WEBHOOK_ATTEMPTS_MAX).await?;
        let attempts_of = |event: &Event| {
            let own = attempts.iter().rev().filter(|attempt| attempt.attempt.event_id == event.id);
            own.cloned().collect()
        };
        Ok(events.into_iter().map(|event| MessageEvent { attempts: attempts_of(&event), event }).collect())
    }
}
