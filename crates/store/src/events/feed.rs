//! A server's event feed: its events in the order of their commits.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{EventCursor, EventSet, MessageId, ServerId};

use super::feed_event::{COLUMN_COUNT, FeedEvent, columns, joins, read};
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

/// Selects a page of a server's event feed.
#[derive(Debug, Clone, Copy)]
pub struct FeedQuery {
    pub server_id: ServerId,
    pub after: EventCursor,
    pub kinds: EventSet,
    /// Only events of this message.
    pub message_id: Option<MessageId>,
    /// Maximum number of events to read; fewer may match `kinds`.
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedPage {
    pub events: Vec<FeedEvent>,
    /// Cursor of the next page.
    pub next: EventCursor,
    /// Whether there may be more events.
    pub has_more: bool,
}

#[boxed_futures]
impl Store {
    /// Events in the order of their commits. An event that is committed later never comes before `next`.
    pub async fn feed(&self, query: FeedQuery) -> Result<FeedPage> {
        self.read(move |sql| Box::pin(feed(sql, query))).await
    }

    /// Position after everything that `feed` currently returns.
    pub async fn feed_end(&self, server_id: ServerId) -> Result<EventCursor> {
        self.read(move |sql| Box::pin(feed_end(sql, server_id))).await
    }
}

/// SQL condition: events that no open transaction can precede.
macro_rules! settled {
    () => {
        "e.xact < settled_xact()"
    };
}

pub(crate) async fn feed(sql: &Sql<'_>, query: FeedQuery) -> Result<FeedPage, StoreError> {
    let FeedQuery { server_id, after, kinds, message_id, limit } = query;
    // All four statements get the same parameters; conditions such as `$2 = $2` use up those that one does not need.
    let text = match (sql.is_sqlite(), message_id) {
        (true, None) => concat!(
            "SELECT ",
            columns!(),
            ", 0 FROM events e ",
            joins!(),
            " WHERE e.server_id = $1 AND e.id > $3 AND $2 = $2 AND $4 = $4 ORDER BY e.id LIMIT $5"
        ),
        (true, Some(_)) => concat!(
            "SELECT ",
            columns!(),
            ", 0 FROM events e ",
            joins!(),
            " WHERE e.server_id = $1 AND e.id > $3 AND $2 = $2 AND e.message_id = $4 ORDER BY e.seq LIMIT $5"
        ),
        (false, None) => concat!(
            "SELECT ",
            columns!(),
            ", e.xact FROM events e ",
            joins!(),
            " WHERE e.server_id = $1 AND (e.xact, e.id) > ($2, $3) AND $4::bigint = $4 AND ",
            settled!(),
            " ORDER BY e.xact, e.id LIMIT $5"
        ),
        (false, Some(_)) => concat!(
            "SELECT ",
            columns!(),
            ", e.xact FROM events e ",
            joins!(),
            " WHERE e.server_id = $1 AND (e.xact, e.id) > ($2, $3) AND e.message_id = $4 AND ",
            settled!(),
            " ORDER BY e.xact, e.id LIMIT $5"
        ),
    };
    let rows = sql
        .query(
            text,
            &[
                server_id.0.into(),
                after.xact.into(),
                after.id.into(),
                message_id.map_or(0, |id| id.0).into(),
                (limit as i64).into(),
            ],
        )
        .await?;
    let mut page = FeedPage { events: Vec::new(), next: after, has_more: rows.len() == limit };
    for row in &rows {
        let event = read(row)?;
        page.next = EventCursor { xact: row.int(COLUMN_COUNT)?, id: event.id.0 };
        if kinds.contains(event.kind) {
            page.events.push(event);
        }
    }
    Ok(page)
}

/// Position after everything that `feed` currently returns.
pub(crate) async fn feed_end(sql: &Sql<'_>, server_id: ServerId) -> Result<EventCursor, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT 0, id FROM events WHERE server_id = $1 ORDER BY id DESC LIMIT 1"
    } else {
        concat!(
            "SELECT e.xact, e.id FROM events e WHERE e.server_id = $1 AND ",
            settled!(),
            " ORDER BY e.xact DESC, e.id DESC LIMIT 1"
        )
    };
    // The end is the position of the last event, not the number of the current transaction: after a restore into
    // another cluster, only stored positions tell earlier events from later ones (`postgres::event_order`).
    let last = sql.query_opt(text, &[server_id.0.into()]).await?;
    last.map_or(Ok(EventCursor::START), |row| Ok(EventCursor { xact: row.int(0)?, id: row.int(1)? }))
}
