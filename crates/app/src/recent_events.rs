//! Newest events of a server, as the portal shows them to people.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{EventId, EventSet, Timestamp};
use postroad_store::{RecentEvents, RecentEventsQuery, StoreError};

use crate::{App, Caller};

/// Maximum number of events that one call examines.
const SCANNED_MAX: usize = 5_000;

/// Selection of events by kind and time.
#[derive(Debug, Clone, Copy)]
pub struct EventSelection {
    pub kinds: EventSet,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

#[boxed_futures]
impl App {
    /// Selected events of the server, newest first. One call examines at most `SCANNED_MAX` events; `before` of the
    /// answer says where the next call continues.
    pub async fn list_recent_events(
        &self,
        caller: &Caller,
        selection: EventSelection,
        before: Option<EventId>,
        limit: usize,
    ) -> Result<RecentEvents, StoreError> {
        let EventSelection { kinds, since, until } = selection;
        let server_id = caller.server_id;
        let query =
            RecentEventsQuery { server_id, kinds, since, until, before, limit, scanned_max: SCANNED_MAX };
        self.inner.store.list_recent_events(query).await
    }
}
