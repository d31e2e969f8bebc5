//! The stream of a server's events.

use postroad_model::{EventCursor, EventId, ServerId};
use tokio::sync::watch;

use crate::records::{FeedPage, FeedQuery, NewEvent, ToldEvent};
use crate::verbs::{events, told};
use crate::{Result, Store};

impl Store {
    /// Counts up whenever this process has appended events. Other nodes' are not counted.
    pub fn told(&self) -> watch::Receiver<u64> {
        self.bells.all()
    }

    /// Likewise for one server, and now and then for others too.
    pub fn told_of(&self, server_id: ServerId) -> watch::Receiver<u64> {
        self.bells.of(server_id)
    }

    /// Events in the order of their commits. Nothing comes later that belongs before `next`.
    pub async fn feed(&self, query: FeedQuery) -> Result<FeedPage> {
        self.read(move |sql| Box::pin(told::feed(sql, query))).await
    }

    /// Behind everything that `feed` gives by now.
    pub async fn feed_end(&self, server_id: ServerId) -> Result<EventCursor> {
        self.read(move |sql| Box::pin(told::feed_end(sql, server_id))).await
    }

    pub async fn find_event(&self, server_id: ServerId, id: EventId) -> Result<Option<ToldEvent>> {
        self.read(move |sql| Box::pin(told::find(sql, server_id, id))).await
    }

    /// Tells of something that is about a server, not about a message.
    pub async fn add_server_event(&self, server_id: ServerId, event: NewEvent) -> Result<()> {
        let now = self.clock.now();
        self.write_with_ids(move |sql, ids| {
            Box::pin(async move { events::add_of_server(sql, &ids, server_id, &event, now).await })
        })
        .await?;
        self.bells.ring([server_id]);
        Ok(())
    }
}
