//! Reading events with their messages: the stream of a server in the order of its commits.

use postroad_model::{Direction, EventCursor, EventId, EventKind, MessageId, MessageToken, ServerId};

use crate::error::StoreError;
use crate::records::{Event, EventMessage, FeedPage, FeedQuery, NewEvent, ToldEvent};
use crate::sql::{Row, Sql};

/// The columns that `read` reads, of `e` (events), `m` (messages) and `s` (sends).
macro_rules! columns {
    () => {
        "e.server_id, e.id, e.message_id, e.seq, e.kind, e.at, e.test, e.data, m.token, m.rcpt_to, s.mail_from,
         s.message_id, s.subject, s.tag, s.metadata, s.direction, s.size, s.bounce, s.created_at"
    };
}
/// How the columns of an event's message are found.
macro_rules! joins {
    () => {
        "LEFT JOIN messages m ON m.server_id = e.server_id AND m.id = e.message_id
         LEFT JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id"
    };
}
pub(crate) use {columns, joins};

/// The number of `columns`: what follows them in a row begins here.
pub(crate) const COLUMNS: usize = 19;

/// Events whose transaction every earlier one has ended before.
macro_rules! settled {
    () => {
        "e.xact < settled_xact()"
    };
}

pub(crate) async fn feed(sql: &Sql<'_>, query: FeedQuery) -> Result<FeedPage, StoreError> {
    let FeedQuery { server_id, after, kinds, message_id, limit } = query;
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
        let told = read(row)?;
        page.next = EventCursor { xact: row.int(COLUMNS)?, id: told.event.id.0 };
        if kinds.contains(told.kind()) {
            page.events.push(told);
        }
    }
    Ok(page)
}

/// Behind everything that is told by now.
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
    // That of an event, not of the present: in another cluster what comes later may be told apart from it only by
    // what is stored (`postgres::event_order`).
    let last = sql.query_opt(text, &[server_id.0.into()]).await?;
    last.map_or(Ok(EventCursor::START), |row| Ok(EventCursor { xact: row.int(0)?, id: row.int(1)? }))
}

pub(crate) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    id: EventId,
) -> Result<Option<ToldEvent>, StoreError> {
    let text =
        concat!("SELECT ", columns!(), " FROM events e ", joins!(), " WHERE e.server_id = $1 AND e.id = $2");
    let row = sql.query_opt(text, &[server_id.0.into(), id.0.into()]).await?;
    row.as_ref().map(read).transpose()
}

/// Reads `columns`.
pub(crate) fn read(row: &Row) -> Result<ToldEvent, StoreError> {
    let message_id = MessageId(row.int(2)?);
    let message = match row.text_opt(8)? {
        None => None,
        Some(token) => Some(EventMessage {
            id: message_id,
            token: MessageToken(token),
            rcpt_to: row.text(9)?,
            mail_from: row.text(10)?,
            message_id: row.text(11)?,
            subject: row.text(12)?,
            tag: row.text_opt(13)?,
            metadata: row.json(14)?,
            direction: row.name(15, Direction::parse)?,
            size: row.int(16)? as u64,
            bounce: row.flag(17)?,
            accepted_at: row.time(18)?,
        }),
    };
    let event = Event {
        id: EventId(row.int(1)?),
        message_id,
        seq: row.int(3)?,
        at: row.time(5)?,
        test: row.flag(6)?,
        event: NewEvent { kind: row.name(4, EventKind::parse)?, data: row.text(7)? },
    };
    Ok(ToldEvent { server_id: ServerId(row.int(0)?), event, message })
}
