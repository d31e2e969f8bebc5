//! Newest events of a server, for people; programs read the feed.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::idgen::first_id_at;
use postroad_model::{EventId, EventKind, EventSet, ServerId, Timestamp};

use super::feed_event::{FeedEvent, columns, joins, read};
use crate::error::StoreError;
use crate::sql::{Sql, to_json};
use crate::{Result, Store};

/// How far the time in an id may differ from the event's time: ids can be ahead of the clock, or created after the
/// event.
const ID_SLACK: Duration = Duration::from_hours(1);

/// Selects events of a server.
#[derive(Debug, Clone, Copy)]
pub struct RecentEventsQuery {
    pub server_id: ServerId,
    pub kinds: EventSet,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Only events before this event.
    pub before: Option<EventId>,
    pub limit: usize,
    /// Maximum number of events to examine; fewer may match.
    pub scanned_max: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecentEvents {
    /// Newest first.
    pub events: Vec<FeedEvent>,
    /// The next page begins before this event; `None` at the end.
    pub before: Option<EventId>,
}

#[boxed_futures]
impl Store {
    /// The newest events, newest first. On PostgreSQL, where transactions overlap, later pages miss events that are
    /// committed meanwhile with ids among those already listed.
    pub async fn list_recent_events(&self, query: RecentEventsQuery) -> Result<RecentEvents> {
        self.read(move |sql| Box::pin(list(sql, query))).await
    }
}

async fn list(sql: &Sql<'_>, query: RecentEventsQuery) -> Result<RecentEvents, StoreError> {
    let RecentEventsQuery { server_id, kinds, since, until, before, limit, scanned_max } = query;
    let from_id = since.map_or(0, |since| first_id_at(since.minus(ID_SLACK)));
    let before_id = until.map_or(i64::MAX, |until| first_id_at(until.plus(ID_SLACK)));
    let before_id = before.map_or(before_id, |before| before.0.min(before_id));
    let scanned = sql
        .query(
            "SELECT id, kind, at FROM events WHERE server_id = $1 AND id >= $2 AND id < $3 ORDER BY id DESC LIMIT $4",
            &[server_id.0.into(), from_id.into(), before_id.into(), (scanned_max as i64).into()],
        )
        .await?;
    let mut ids = Vec::new();
    for row in &scanned {
        let (kind, at) = (row.parsed(1, EventKind::parse)?, row.time(2)?);
        let is_in_range = since.is_none_or(|since| at >= since) && until.is_none_or(|until| at < until);
        if is_in_range && kinds.contains(kind) {
            ids.push(row.int(0)?);
        }
        if ids.len() == limit {
            break;
        }
    }
    let last_of_full_page = if ids.len() == limit { ids.last().copied() } else { None };
    // If the page is not full, the next page begins before the last event examined.
    let last = match last_of_full_page {
        None if scanned.len() == scanned_max => scanned.last().map(|row| row.int(0)).transpose()?,
        _ => last_of_full_page,
    };
    let events = find(sql, server_id, &ids).await?;
    Ok(RecentEvents { events, before: last.map(EventId) })
}

async fn find(sql: &Sql<'_>, server_id: ServerId, ids: &[i64]) -> Result<Vec<FeedEvent>, StoreError> {
    let (Some(newest), Some(oldest)) = (ids.first(), ids.last()) else { return Ok(Vec::new()) };
    let text = if sql.is_sqlite() {
        concat!(
            "SELECT ",
            columns!(),
            " FROM events e ",
            joins!(),
            " WHERE e.server_id = $1 AND e.id BETWEEN $2 AND $3 AND e.id IN (SELECT value FROM json_each($4))
              ORDER BY e.id DESC"
        )
    } else {
        concat!(
            "SELECT ",
            columns!(),
            " FROM events e ",
            joins!(),
            " WHERE e.server_id = $1 AND e.id BETWEEN $2 AND $3
              AND e.id IN (SELECT value::bigint FROM json_array_elements_text(CAST($4::text AS json)))
              ORDER BY e.id DESC"
        )
    };
    let params = [server_id.0.into(), (*oldest).into(), (*newest).into(), to_json(&ids).into()];
    sql.query(text, &params).await?.iter().map(read).collect()
}
