//! Writes waiting tracking events to the store, in batches.
//!
//! On failure: while the store is unavailable the batch goes back into the queue and is retried every second.
//! If the store refuses a batch for another reason, its events are written one by one. If the store refuses a single
//! event, that is a bug: the event is logged and dropped.

use std::sync::Arc;
use std::time::Duration;

use postroad_app::App;
use postroad_app::tracking_events::TrackingEvent;
use postroad_store::StoreError;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::event_queue::EventQueue;

/// Maximum number of events in one transaction: a long transaction would delay SQLite's only writer.
const BATCH_EVENTS_MAX: usize = 100;
/// Longest delay until due clicks, and events added while others wait, are noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
const STORE_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Time to write the last events when the service stops.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(5);

pub(crate) async fn run(app: App, queue: Arc<EventQueue>, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        if !write_due(&app, &queue, false).await {
            tokio::select! {
                () = sleep(STORE_RETRY_PAUSE) => {}
                _ = stop.changed() => {}
            }
            continue;
        }
        let has_waiting = queue.len() > 0;
        tokio::select! {
            () = queue.added.notified(), if !has_waiting => {}
            () = sleep(POLL_INTERVAL), if has_waiting => {}
            _ = stop.changed() => {}
        }
    }
    if !timeout(FLUSH_TIME_MAX, write_due(&app, &queue, true)).await.unwrap_or(false) {
        let lost = queue.len();
        tracing::warn!(lost, "tracking: events lost at shutdown");
    }
}

/// Writes all events that are due, or with `everything` all that wait. Returns `false` if the store is unavailable.
async fn write_due(app: &App, queue: &EventQueue, everything: bool) -> bool {
    loop {
        let dropped = queue.take_dropped();
        if dropped > 0 {
            tracing::warn!(dropped, "tracking: the queue is full; old events are dropped");
        }
        let batch = queue.take(BATCH_EVENTS_MAX, app.now(), everything);
        if batch.is_empty() {
            return true;
        }
        let unwritten = write(|events| app.record_tracking_events(events), batch).await;
        if !unwritten.is_empty() {
            queue.put_back(unwritten);
            return false;
        }
    }
}

/// Writes the events; returns those that are not written because the store is unavailable.
async fn write<F>(
    record: impl Fn(Vec<TrackingEvent>) -> F,
    mut batch: Vec<TrackingEvent>,
) -> Vec<TrackingEvent>
where
    F: Future<Output = Result<(), StoreError>>,
{
    match record(batch.clone()).await {
        Ok(()) => return Vec::new(),
        Err(StoreError::Unavailable(error)) => {
            tracing::warn!(%error, count = batch.len(), "tracking: store unavailable; events wait in the queue");
            return batch;
        }
        Err(error) => {
            tracing::warn!(%error, count = batch.len(), "tracking: storing a batch failed; storing events one by one");
        }
    }
    while let Some(event) = batch.first() {
        match record(vec![event.clone()]).await {
            Ok(()) => {}
            Err(StoreError::Unavailable(error)) => {
                tracing::warn!(%error, count = batch.len(), "tracking: store unavailable; events wait in the queue");
                return batch;
            }
            Err(error) => {
                tracing::error!(%error, "tracking: an event was refused by the store and dropped");
            }
        }
        batch.remove(0);
    }
    batch
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use postroad_mail::{TrackKind, TrackToken};
    use postroad_model::{MessageId, ServerId, Timestamp};

    use super::*;

    fn event(message: i64) -> TrackingEvent {
        let (server_id, message_id) = (ServerId(1), MessageId(message));
        TrackingEvent {
            token: TrackToken { server_id, message_id, kind: TrackKind::Open },
            link: String::new(),
            at: Timestamp::from_micros(1),
            ip_address: [192, 0, 2, 1].into(),
            user_agent: String::new(),
            is_bot: false,
        }
    }

    /// Writes events of the messages 0 to 5 to a store that refuses some. Returns the messages of the written and of
    /// the remaining events.
    async fn write_to_refusing_store(refuse: impl Fn(i64) -> Option<StoreError>) -> (Vec<i64>, Vec<i64>) {
        let stored = Mutex::new(Vec::new());
        let ids = |events: &[TrackingEvent]| {
            events.iter().map(|event| event.token.message_id.0).collect::<Vec<_>>()
        };
        let record = |events: Vec<TrackingEvent>| {
            let new = ids(&events);
            let refused = new.iter().find_map(|id| refuse(*id));
            std::future::ready(if let Some(error) = refused {
                Err(error)
            } else {
                stored.lock().unwrap().extend(new);
                Ok(())
            })
        };
        let left = write(record, (0..=5).map(event).collect()).await;
        (stored.into_inner().unwrap(), ids(&left))
    }

    #[tokio::test]
    async fn a_refused_event_is_dropped_and_the_others_are_written() {
        let refused = |id| (id == 2).then(|| StoreError::Internal("no".into()));
        assert_eq!(write_to_refusing_store(refused).await, (vec![0, 1, 3, 4, 5], vec![]));
    }

    #[tokio::test]
    async fn unwritten_events_are_kept_while_the_store_is_unavailable() {
        let unavailable = |_| Some(StoreError::Unavailable("away".into()));
        assert_eq!(write_to_refusing_store(unavailable).await, (vec![], vec![0, 1, 2, 3, 4, 5]));
        let becomes_unavailable = |id| match id {
            2 => Some(StoreError::Internal("no".into())),
            4 => Some(StoreError::Unavailable("away".into())),
            _ => None,
        };
        assert_eq!(write_to_refusing_store(becomes_unavailable).await, (vec![0, 1, 3], vec![4, 5]));
    }
}
