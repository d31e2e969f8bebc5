//! Replays one event, or all events of a time range, to a webhook.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{EventId, Timestamp, WebhookAttemptId, WebhookId};
use postroad_store::{AuditSubject, Replay, ReplayProgress, Store, StoreError};

use super::WebhookRefusal;
use crate::access::Operation;
use crate::{App, Caller, FieldProblem};

/// Maximum number of steps in one call, each of up to 500 events; the caller continues after them.
const STEPS_MAX: usize = 100;

/// Events to replay.
#[derive(Debug, Clone, Copy)]
pub enum ReplayRequest {
    Event(EventId),
    /// Event of an attempt.
    Attempt(WebhookAttemptId),
    /// Events in this range, without its end; only those after `after`, where an earlier call stopped.
    Between {
        since: Timestamp,
        until: Timestamp,
        after: Option<EventId>,
    },
}

#[boxed_futures]
impl App {
    pub async fn replay_webhook(
        &self,
        caller: &Caller,
        id: WebhookId,
        request: ReplayRequest,
    ) -> Result<ReplayProgress, WebhookRefusal> {
        let webhook = self.find_webhook(caller, id).await?;
        if !webhook.enabled {
            let text = "the webhook is disabled; enable it with webhooks/update first";
            return Err(WebhookRefusal::Validation(vec![FieldProblem::new("/id", text)]));
        }
        let subject = AuditSubject::Webhook(caller.server_id, id);
        let store = self.audited_store(&caller.requester(), Operation::WebhooksReplay, subject);
        match request {
            ReplayRequest::Event(event) => replay_event(&store, caller, id, event).await,
            ReplayRequest::Attempt(attempt) => {
                let found = store.find_webhook_attempt(caller.server_id, attempt).await?;
                let found =
                    found.filter(|found| found.webhook_id == id).ok_or(WebhookRefusal::EventNotFound)?;
                replay_event(&store, caller, id, found.attempt.event_id).await
            }
            ReplayRequest::Between { since, until, after } => {
                let mut sum = ReplayProgress { events: 0, continue_after: after };
                for _ in 0..STEPS_MAX {
                    let after = sum.continue_after.unwrap_or(EventId(0));
                    let range = Replay::Between { from: since, to: until, after };
                    // Only the first step that finds events writes an audit entry.
                    let store = if sum.events == 0 { &store } else { &self.inner.store };
                    let step = match store.replay_webhook(caller.server_id, id, range).await {
                        // The events so far are replayed already: the caller continues after them.
                        Err(error) if sum.events > 0 => {
                            tracing::warn!(webhook.id = %id, %error, "webhook replay stopped early; the caller may continue it");
                            break;
                        }
                        step => step?,
                    };
                    sum.events += step.events;
                    sum.continue_after = step.continue_after;
                    if step.continue_after.is_none() {
                        break;
                    }
                }
                Ok(sum)
            }
        }
    }
}

async fn replay_event(
    store: &Store,
    caller: &Caller,
    id: WebhookId,
    event: EventId,
) -> Result<ReplayProgress, WebhookRefusal> {
    let replayed = store.replay_webhook(caller.server_id, id, Replay::Event(event)).await;
    replayed.map_err(|error| match error {
        StoreError::NotFound => WebhookRefusal::EventNotFound,
        other => other.into(),
    })
}
