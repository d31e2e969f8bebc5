//! Event feed of a server: returns events in order, without gaps, and waits for new events.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use postroad_boxed_futures::boxed_futures;
use postroad_model::{EventCursor, EventSet, MessageId, ServerId};
use postroad_store::{FeedPage, FeedQuery, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::App;

/// Maximum number of calls of one server that wait their full time for events.
const WAITING_CALLS_OF_SERVER_MAX: usize = 8;
/// Maximum number of calls of all servers that wait their full time.
const WAITING_CALLS_MAX: usize = 512;
/// Maximum waiting time of further calls, so that repeated polling stays slow.
const WAIT_WITHOUT_PERMIT: Duration = Duration::from_secs(1);
/// Interval of reads without a notice: other nodes add events without notifying this node.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after a notice, so that events in quick succession are read together.
const PAUSE_AFTER_NOTICE: Duration = Duration::from_millis(20);
/// Maximum number of pages without a matching event that are scanned before a call is answered.
const PAGES_SCANNED_MAX: usize = 20;

/// Position at which a feed request starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedStart {
    /// At the oldest event that is kept.
    Oldest,
    /// Only events from now on.
    Latest,
    After(EventCursor),
}

#[derive(Debug, Clone, Copy)]
pub struct FeedRequest {
    pub start: FeedStart,
    pub kinds: EventSet,
    pub message_id: Option<MessageId>,
    pub limit: usize,
    /// Longest time to wait for the first event.
    pub wait: Duration,
}

/// Waiting calls, and the signal that stops them.
#[derive(Debug)]
pub(crate) struct WaitingCalls {
    count_by_server: Mutex<HashMap<ServerId, usize>>,
    stop: watch::Sender<bool>,
}

impl Default for WaitingCalls {
    fn default() -> Self {
        Self { count_by_server: Mutex::default(), stop: watch::Sender::new(false) }
    }
}

impl WaitingCalls {
    /// Takes a permit to wait; `None` if too many calls wait.
    fn permit(&self, server_id: ServerId) -> Option<FeedPermit<'_>> {
        let mut count_by_server = self.lock();
        let is_full = count_by_server.values().sum::<usize>() >= WAITING_CALLS_MAX;
        let own = count_by_server.get(&server_id).copied().unwrap_or_default();
        if is_full || own >= WAITING_CALLS_OF_SERVER_MAX {
            return None;
        }
        count_by_server.insert(server_id, own + 1);
        Some(FeedPermit { waiting: self, server_id })
    }

    /// Becomes true when the service stops; then waiting calls end.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerId, usize>> {
        self.count_by_server.lock()
    }
}

/// Permit to wait; it is free again when this value is dropped.
struct FeedPermit<'a> {
    waiting: &'a WaitingCalls,
    server_id: ServerId,
}

impl Drop for FeedPermit<'_> {
    fn drop(&mut self) {
        let mut count_by_server = self.waiting.lock();
        if let Some(own) = count_by_server.get_mut(&self.server_id) {
            *own -= 1;
            if *own == 0 {
                count_by_server.remove(&self.server_id);
            }
        }
    }
}

#[boxed_futures]
impl App {
    /// Ends all waiting calls, now and later: the service is stopping.
    pub fn stop_waiting(&self) {
        self.inner.waiting_calls.stop.send_replace(true);
    }

    /// Whether waiting calls end at once.
    pub fn is_stopping(&self) -> bool {
        *self.inner.waiting_calls.stop.borrow()
    }

    pub async fn list_events(
        &self,
        server_id: ServerId,
        request: FeedRequest,
    ) -> Result<FeedPage, StoreError> {
        let store = &self.inner.store;
        let mut notices = store.server_event_notices(server_id);
        let mut stop = self.inner.waiting_calls.stop_signal();
        let after = match request.start {
            FeedStart::Oldest => EventCursor::START,
            FeedStart::After(cursor) => cursor,
            FeedStart::Latest => store.feed_end(server_id).await?,
        };
        let started_at = Instant::now();
        let mut deadline = started_at + request.wait;
        let mut query = FeedQuery {
            server_id,
            after,
            kinds: request.kinds,
            message_id: request.message_id,
            limit: request.limit,
        };
        let mut permit = None;
        loop {
            notices.mark_unchanged();
            let page = self.scan(&mut query).await?;
            let is_over = !page.events.is_empty() || page.has_more || Instant::now() >= deadline;
            if is_over || *stop.borrow() {
                return Ok(page);
            }
            if permit.is_none() {
                permit = self.inner.waiting_calls.permit(server_id);
            }
            if permit.is_none() {
                deadline = deadline.min(started_at + WAIT_WITHOUT_PERMIT);
            }
            let is_notified = tokio::select! {
                _ = notices.changed() => true,
                () = tokio::time::sleep(POLL_INTERVAL) => false,
                () = tokio::time::sleep_until(deadline) => false,
                _ = stop.changed() => false,
            };
            if is_notified {
                tokio::time::sleep(PAUSE_AFTER_NOTICE).await;
            }
        }
    }

    /// Returns one page of matching events, or the position reached without a match.
    async fn scan(&self, query: &mut FeedQuery) -> Result<FeedPage, StoreError> {
        let mut page = FeedPage { events: Vec::new(), next: query.after, has_more: false };
        for _ in 0..PAGES_SCANNED_MAX {
            page = self.inner.store.feed(*query).await?;
            query.after = page.next;
            if !page.events.is_empty() || !page.has_more {
                break;
            }
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_limited_for_one_server_and_in_total() {
        let waiting = WaitingCalls::default();
        let permits =
            |server_id| std::iter::from_fn(|| waiting.permit(ServerId(server_id))).collect::<Vec<_>>();
        let first = permits(1);
        assert_eq!(first.len(), WAITING_CALLS_OF_SERVER_MAX);
        let others: Vec<_> = (2..1_000).flat_map(&permits).collect();
        assert_eq!(first.len() + others.len(), WAITING_CALLS_MAX);
        drop(first);
        assert_eq!(permits(2_000).len(), WAITING_CALLS_OF_SERVER_MAX);
        drop(others);
        assert!(waiting.lock().is_empty());
    }
}
