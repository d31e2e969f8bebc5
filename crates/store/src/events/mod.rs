//! Events: appends them, reads the events of a message or a server, and notifies waiting readers.

pub(crate) mod append;
pub(crate) mod event;
mod feed;
pub(crate) mod feed_event;
pub(crate) mod hold_events;
pub(crate) mod notifier;
mod recent;

pub use event::{Event, NewEvent};
pub use feed::{FeedPage, FeedQuery};
pub use feed_event::{EventMessage, FeedEvent};
pub use recent::{RecentEvents, RecentEventsQuery};
