//! Events of a server that are not counted yet, with the dimensions of their messages.

use std::collections::HashMap;

use postroad_model::{EventCursor, EventKind, MessageId, PoolId, ServerId, Timestamp};
use serde::Deserialize;

use super::dimensions::Dimensions;
use super::tally::{CountedEvent, CountingRules, EventData, Facts, Hold};
use super::{attempts, value_limit};
use crate::error::StoreError;
use crate::sql::{Row, Sql, to_json};

/// Uncounted events of a server.
pub(crate) struct Uncounted {
    /// The server's mark: the position up to which events are counted.
    pub(crate) from: EventCursor,
    /// Position of the last event that was read; `from` if there are no events.
    pub(crate) to: EventCursor,
    /// Whether as many events were read as allowed, so that more may follow.
    pub(crate) is_full: bool,
    /// Events to count, without events that are never counted.
    pub(crate) events: Vec<CountedEvent>,
    /// Mail providers by recipient domain.
    pub(crate) providers: HashMap<String, String>,
    pub(crate) holds: HashMap<MessageId, Vec<Hold>>,
}

/// Options of a send that counting reads, such as its template.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CountedOptions {
    send_at: Option<Timestamp>,
    pool_id: Option<PoolId>,
    template: Option<String>,
}

/// The servers that have uncounted events.
pub(crate) async fn list_uncounted_servers(sql: &Sql<'_>) -> Result<Vec<ServerId>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT s.id FROM servers s LEFT JOIN counter_marks c ON c.server_id = s.id
         WHERE EXISTS (SELECT 1 FROM events e WHERE e.server_id = s.id AND e.id > COALESCE(c.event_id, 0))"
    } else {
        // PostgreSQL may execute `EXISTS` as a join with all events.
        "SELECT s.id FROM servers s LEFT JOIN counter_marks c ON c.server_id = s.id
         WHERE (SELECT e.id FROM events e WHERE e.server_id = s.id
                AND (e.xact, e.id) > (COALESCE(c.xact, 0), COALESCE(c.event_id, 0))
                AND e.xact < settled_xact() ORDER BY e.xact, e.id LIMIT 1) IS NOT NULL"
    };
    sql.query(text, &[]).await?.iter().map(|row| row.int(0).map(ServerId)).collect()
}

pub(crate) async fn read_uncounted(
    sql: &Sql<'_>,
    server_id: ServerId,
    rules: &CountingRules,
    limit: usize,
) -> Result<Uncounted, StoreError> {
    let from = read_mark(sql, server_id).await?;
    let rows = read_rows(sql, server_id, from, limit).await?;
    let to = match rows.last() {
        Some(last) => EventCursor { xact: last.int(0)?, id: last.int(1)? },
        None => from,
    };
    let is_full = rows.len() == limit;
    let pool_id = if rows.is_empty() { 0 } else { server_pool(sql, server_id).await? };
    let mut events = Vec::with_capacity(rows.len());
    for row in &rows {
        events.extend(counted_event(row, pool_id)?);
    }
    // Before `merge_beyond_limit`: simulated messages are not counted, so their tags must not use up the limit of tags.
    events.retain(|event| event.facts.recipient_domain() != rules.simulator_domain.as_str());
    attempts::fill_in(sql, server_id, &mut events).await?;
    value_limit::merge_beyond_limit(sql, server_id, &mut events).await?;
    let providers = find_providers(sql, &events).await?;
    let holds = find_holds(sql, server_id, &events).await?;
    Ok(Uncounted { from, to, is_full, events, providers, holds })
}

pub(crate) async fn read_mark(sql: &Sql<'_>, server_id: ServerId) -> Result<EventCursor, StoreError> {
    let text = "SELECT xact, event_id FROM counter_marks WHERE server_id = $1";
    let row = sql.query_opt(text, &[server_id.0.into()]).await?;
    row.map_or(Ok(EventCursor::START), |row| Ok(EventCursor { xact: row.int(0)?, id: row.int(1)? }))
}

/// Reads rows after the mark. On PostgreSQL, only events that no open transaction can precede.
async fn read_rows(
    sql: &Sql<'_>,
    server_id: ServerId,
    from: EventCursor,
    limit: usize,
) -> Result<Vec<Row>, StoreError> {
    if sql.is_sqlite() {
        return sql
            .query(
                "SELECT 0, e.id, e.message_id, e.seq, e.kind, e.at, e.test, e.data, m.rcpt_to, s.from_domain, s.tag,
                        s.credential_id, s.options, s.created_at, s.direction, m.send_at
                 FROM events e LEFT JOIN messages m ON m.server_id = e.server_id AND m.id = e.message_id
                 LEFT JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
                 WHERE e.server_id = $1 AND e.id > $2 ORDER BY e.id LIMIT $3",
                &[server_id.0.into(), from.id.into(), (limit as i64).into()],
            )
            .await;
    }
    sql.query(
        "SELECT e.xact, e.id, e.message_id, e.seq, e.kind, e.at, e.test, e.data, m.rcpt_to, s.from_domain, s.tag,
                s.credential_id, s.options, s.created_at, s.direction, m.send_at
         FROM (SELECT * FROM events WHERE server_id = $1 AND (xact, id) > ($2, $3)
               AND xact < settled_xact() ORDER BY xact, id LIMIT $4) e
         LEFT JOIN messages m ON m.server_id = e.server_id AND m.id = e.message_id
         LEFT JOIN sends s ON s.server_id = m.server_id AND s.id = m.send_id
         ORDER BY e.xact, e.id",
        &[server_id.0.into(), from.xact.into(), from.id.into(), (limit as i64).into()],
    )
    .await
}

/// The event of a row; `None` for events that are not counted: of messages in test mode, incoming mail, deleted
/// messages and the server itself, and events of a kind that this version does not know.
fn counted_event(row: &Row, server_pool: i64) -> Result<Option<CountedEvent>, StoreError> {
    let is_outgoing = row.text_opt(14)?.as_deref() == Some("outgoing");
    if row.flag(6)? || !is_outgoing {
        return Ok(None);
    }
    // The event may have a kind that only a later version knows.
    let Some(kind) = EventKind::parse(&row.text(4)?) else { return Ok(None) };
    let options: CountedOptions = serde_json::from_str(&row.text(12)?).unwrap_or_default();
    let accepted_at = row.time(13)?;
    Ok(Some(CountedEvent {
        cursor: EventCursor { xact: row.int(0)?, id: row.int(1)? },
        message_id: MessageId(row.int(2)?),
        seq: row.int(3)?,
        kind,
        at: row.time(5)?,
        data: if kind == EventKind::Accepted {
            EventData::default()
        } else {
            EventData::parse(&row.text(7)?)
        },
        facts: Facts {
            rcpt_to: row.text(8)?,
            dimensions: Dimensions {
                domain: row.text(9)?,
                tag: row.text_opt(10)?.unwrap_or_default(),
                provider: String::new(),
                template: options.template.unwrap_or_default(),
                pool_id: options.pool_id.map_or(server_pool, |pool| pool.0),
                credential_id: row.int_opt(11)?.unwrap_or(0),
                ..Dimensions::default()
            },
            wanted_at: row.time_opt(15)?.or(options.send_at).map_or(accepted_at, |at| at.max(accepted_at)),
        },
    }))
}

/// The pool of a server; 0 for the installation's default.
async fn server_pool(sql: &Sql<'_>, server_id: ServerId) -> Result<i64, StoreError> {
    let row = sql.query_opt("SELECT pool_id FROM servers WHERE id = $1", &[server_id.0.into()]).await?;
    row.map_or(Ok(0), |row| Ok(row.int_opt(0)?.unwrap_or(0)))
}

async fn find_providers(
    sql: &Sql<'_>,
    events: &[CountedEvent],
) -> Result<HashMap<String, String>, StoreError> {
    let mut domains: Vec<String> = events.iter().map(|event| event.facts.recipient_domain()).collect();
    domains.sort_unstable();
    domains.dedup();
    if domains.is_empty() {
        return Ok(HashMap::new());
    }
    let text = if sql.is_sqlite() {
        "SELECT p.domain, p.provider FROM json_each($1) AS wanted CROSS JOIN recipient_providers p ON p.domain = wanted.value"
    } else {
        "SELECT p.domain, p.provider FROM json_array_elements_text(CAST($1::text AS json)) AS wanted (domain)
         JOIN recipient_providers p ON p.domain = wanted.domain"
    };
    let rows = sql.query(text, &[to_json(&domains).into()]).await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?))).collect()
}

async fn find_holds(
    sql: &Sql<'_>,
    server_id: ServerId,
    events: &[CountedEvent],
) -> Result<HashMap<MessageId, Vec<Hold>>, StoreError> {
    let mut messages: Vec<i64> =
        events.iter().filter(|event| event.needs_holds()).map(|event| event.message_id.0).collect();
    messages.sort_unstable();
    messages.dedup();
    let mut holds: HashMap<MessageId, Vec<Hold>> = HashMap::new();
    if messages.is_empty() {
        return Ok(holds);
    }
    let text = if sql.is_sqlite() {
        // SQLite would otherwise scan all events of the server.
        "SELECT e.message_id, e.seq, e.data FROM json_each($2) AS wanted
         CROSS JOIN events e INDEXED BY events_by_message
             ON e.server_id = $1 AND e.message_id = wanted.value AND e.kind = 'message.held'"
    } else {
        "SELECT e.message_id, e.seq, e.data
         FROM json_array_elements_text(CAST($2::text AS json)) AS wanted (message_id)
         JOIN events e ON e.server_id = $1 AND e.message_id = wanted.message_id::bigint AND e.kind = 'message.held'"
    };
    for row in sql.query(text, &[server_id.0.into(), to_json(&messages).into()]).await? {
        let hold = Hold { seq: row.int(1)?, is_suppressed: EventData::parse(&row.text(2)?).is_suppressed() };
        holds.entry(MessageId(row.int(0)?)).or_default().push(hold);
    }
    Ok(holds)
}
