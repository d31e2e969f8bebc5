//! Opens, clicks and unsubscriptions of delivered messages.

mod agents;
mod recent_clicks;

use std::net::IpAddr;

use postroad_boxed_futures::boxed_futures;
use postroad_mail::{TrackKind, TrackToken};
use postroad_model::{EventKind, MessageId, Timestamp};
use postroad_store::{Event, NewTrackingEvent, StoreError, TrackingEventKind};
use serde::Deserialize;

pub use agents::{Agents, Fetch};
pub use recent_clicks::{CLICK_WINDOW, RecentClicks};

use crate::{App, Caller};

/// Fetch of a pixel, click on a link, or unsubscription.
#[derive(Debug, Clone)]
pub struct TrackingEvent {
    pub token: TrackToken,
    /// Identifies the link within its message.
    pub link: String,
    pub at: Timestamp,
    pub ip_address: IpAddr,
    /// Already cut to a length that can be stored.
    pub user_agent: String,
    pub is_bot: bool,
}

/// An open, or a click if it has a `url`.
#[derive(Debug)]
pub struct Activity {
    pub url: Option<String>,
    pub ip_address: String,
    pub user_agent: String,
    pub at: Timestamp,
    pub bot: bool,
}

/// Data of an event as stored.
#[derive(Deserialize)]
struct StoredActivity {
    url: Option<String>,
    ip_address: String,
    user_agent: String,
    bot: bool,
}

#[boxed_futures]
impl App {
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Stores the tracking events with their message events, all or none. Skips events of messages that no longer
    /// exist, but an unsubscription from such a message still suppresses the recipient.
    pub async fn record_tracking_events(&self, events: Vec<TrackingEvent>) -> Result<(), StoreError> {
        let events = events.into_iter().map(new_event).collect();
        self.inner.store.record_tracking_events(events, self.inner.simulator_domain.clone()).await
    }

    /// Opens and clicks of a message, in time order.
    pub async fn list_activity(&self, caller: &Caller, id: MessageId) -> Result<Vec<Activity>, StoreError> {
        let events = self.inner.store.list_events(caller.server_id, id).await?;
        Ok(events.iter().filter_map(activity).collect())
    }

    /// Version of the list of custom tracking hosts: changes whenever a host is added or removed.
    pub async fn tracking_hosts_version(&self) -> Result<Option<String>, StoreError> {
        self.inner.store.tracking_hosts_version().await
    }

    /// Custom tracking host names of customers' domains.
    pub async fn list_tracking_hosts(&self) -> Result<Vec<String>, StoreError> {
        self.inner.store.list_tracking_hosts().await
    }
}

fn activity(event: &Event) -> Option<Activity> {
    if !matches!(event.kind, EventKind::Opened | EventKind::Clicked) {
        return None;
    }
    let stored: StoredActivity = serde_json::from_str(&event.data).ok()?;
    Some(Activity {
        url: stored.url,
        ip_address: stored.ip_address,
        user_agent: stored.user_agent,
        at: event.at,
        bot: stored.bot,
    })
}

fn new_event(event: TrackingEvent) -> NewTrackingEvent {
    let TrackToken { server_id, message_id, kind } = event.token;
    let kind = match kind {
        TrackKind::Open => TrackingEventKind::Open,
        TrackKind::Click { target } => TrackingEventKind::Click { url: target, link: event.link },
        TrackKind::Unsubscribe { address } => TrackingEventKind::Unsubscribe { address },
    };
    NewTrackingEvent {
        server_id,
        message_id,
        kind,
        at: event.at,
        ip_address: event.ip_address.to_string(),
        user_agent: printable(&event.user_agent),
        is_bot: event.is_bot,
    }
}

/// Removes control characters from client text, for storage and display.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
