//! The stream of a server's events, pulled: in order, without gaps, waiting for what has not happened yet.

use std::time::Duration;

use postroad_model::{EventCursor, EventSet, MessageId, ServerId};
use postroad_store::{FeedPage, FeedQuery, StoreError};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::App;

/// Calls that wait for events; more are answered at once with what there is.
const WAITING_MAX: usize = 512;
/// Other nodes append events too, and nobody tells of those.
const POLL: Duration = Duration::from_secs(1);
/// Between two looks of one call, however much happens on other servers.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// Pages without a wanted event that one call looks through.
const PAGES_MAX: usize = 20;

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedStart {
    /// The oldest event that is kept.
    Oldest,
    /// What happens from now on.
    Latest,
    After(EventCursor),
}

#[derive(Debug, Clone, Copy)]
pub struct FeedWish {
    pub start: FeedStart,
    pub kinds: EventSet,
    pub message_id: Option<MessageId>,
    pub limit: usize,
    /// How long to wait for the first event.
    pub wait: Duration,
}

/// Who waits, and when all have to stop.
#[derive(Debug)]
pub(crate) struct Waiting {
    places: Semaphore,
    stop: watch::Sender<bool>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { places: Semaphore::new(WAITING_MAX), stop: watch::Sender::new(false) }
    }
}

impl App {
    /// Ends what waits for events, now and later: the service is stopping.
    pub fn stop_waiting(&self) {
        self.inner.waiting.stop.send_replace(true);
    }

    pub async fn list_events(&self, server_id: ServerId, wish: FeedWish) -> Result<FeedPage, StoreError> {
        let store = &self.inner.store;
        let mut told = store.told();
        let mut stop = self.inner.waiting.stop.subscribe();
        let after = match wish.start {
            FeedStart::Oldest => EventCursor::START,
            FeedStart::After(cursor) => cursor,
            FeedStart::Latest => store.feed_end(server_id).await?,
        };
        let deadline = Instant::now() + wish.wait;
        let mut query =
            FeedQuery { server_id, after, kinds: wish.kinds, message_id: wish.message_id, limit: wish.limit };
        let mut place = None;
        loop {
            told.mark_unchanged();
            let page = self.look(&mut query).await?;
            let is_over = !page.events.is_empty() || page.has_more || Instant::now() >= deadline;
            if is_over || *stop.borrow() {
                return Ok(page);
            }
            if place.is_none() {
                let Ok(permit) = self.inner.waiting.places.try_acquire() else { return Ok(page) };
                place = Some(permit);
            }
            let is_told = tokio::select! {
                _ = told.changed() => true,
                () = tokio::time::sleep(POLL) => false,
                () = tokio::time::sleep_until(deadline) => false,
                _ = stop.changed() => false,
            };
            if is_told {
                tokio::time::sleep(LOOK_PAUSE).await;
            }
        }
    }

    /// One page, or the place where the search for a wanted event got to.
    async fn look(&self, query: &mut FeedQuery) -> Result<FeedPage, StoreError> {
        let mut page = FeedPage { events: Vec::new(), next: query.after, has_more: false };
        for _ in 0..PAGES_MAX {
            page = self.inner.store.feed(*query).await?;
            query.after = page.next;
            if !page.events.is_empty() || !page.has_more {
                break;
            }
        }
        Ok(page)
    }
}
