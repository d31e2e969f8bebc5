//! The queue as an operator looks at it.

use postroad_model::{DomainName, MessageId, PoolId, ServerId, SourceId, Status, Timestamp};

use crate::error::StoreError;
use crate::records::{Claimed, QueueEntry, QueueFilter, QueueStats};
use crate::sql::{Row, Sql};

const LARGEST_DOMAINS: i64 = 20;

/// In the order they are due, beginning after `after`. On SQLite `claimed` is still to be filled in.
pub(crate) async fn list(
    sql: &Sql<'_>,
    filter: QueueFilter,
    after: Option<(Timestamp, MessageId)>,
    limit: i64,
) -> Result<Vec<QueueEntry>, StoreError> {
    // CROSS JOIN: SQLite then keeps the order of the tables, which gives it the index that is in order already.
    let text = if sql.is_sqlite() {
        "SELECT q.message_id, q.server_id, s.name, q.domain, m.rcpt_to, m.status, q.due_at, q.expires_at, q.attempts,
                x.created_at, 0
         FROM queue q CROSS JOIN servers s CROSS JOIN messages m CROSS JOIN sends x
         WHERE s.id = q.server_id AND m.server_id = q.server_id AND m.id = q.message_id
           AND x.server_id = m.server_id AND x.id = m.send_id AND (q.due_at, q.message_id) > ($1, $2)
           AND (q.server_id = $3 OR $3 = 0) AND (q.domain = $4 OR $4 = '')
         ORDER BY q.due_at, q.message_id LIMIT $5"
    } else {
        "SELECT q.message_id, q.server_id, s.name, q.domain, m.rcpt_to, m.status, q.due_at, q.expires_at, q.attempts,
                x.created_at, (q.claimed_node IS NOT NULL)::int::bigint
         FROM queue q CROSS JOIN servers s CROSS JOIN messages m CROSS JOIN sends x
         WHERE s.id = q.server_id AND m.server_id = q.server_id AND m.id = q.message_id
           AND x.server_id = m.server_id AND x.id = m.send_id AND (q.due_at, q.message_id) > ($1, $2)
           AND (q.server_id = $3 OR $3 = 0) AND (q.domain = $4 OR $4 = '')
         ORDER BY q.due_at, q.message_id LIMIT $5"
    };
    let (after, after_id) = after.map_or((i64::MIN, 0), |(due_at, id)| (due_at.as_micros(), id.0));
    let rows = sql
        .query(
            text,
            &[
                after.into(),
                after_id.into(),
                filter.server_id.map_or(0, |id| id.0).into(),
                filter.domain.as_ref().map_or("", DomainName::as_str).into(),
                limit.into(),
            ],
        )
        .await?;
    rows.iter().map(read).collect()
}

/// One entry, whichever server's: a point lookup for each of them, because everything is keyed by server.
pub(crate) async fn find(sql: &Sql<'_>, id: MessageId) -> Result<Option<QueueEntry>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT q.message_id, q.server_id, s.name, q.domain, m.rcpt_to, m.status, q.due_at, q.expires_at, q.attempts,
                x.created_at, 0
         FROM servers s CROSS JOIN queue q CROSS JOIN messages m CROSS JOIN sends x
         WHERE q.server_id = s.id AND q.message_id = $1 AND m.server_id = q.server_id AND m.id = q.message_id
           AND x.server_id = m.server_id AND x.id = m.send_id"
    } else {
        "SELECT q.message_id, q.server_id, s.name, q.domain, m.rcpt_to, m.status, q.due_at, q.expires_at, q.attempts,
                x.created_at, (q.claimed_node IS NOT NULL)::int::bigint
         FROM servers s CROSS JOIN queue q CROSS JOIN messages m CROSS JOIN sends x
         WHERE q.server_id = s.id AND q.message_id = $1 AND m.server_id = q.server_id AND m.id = q.message_id
           AND x.server_id = m.server_id AND x.id = m.send_id"
    };
    sql.query_opt(text, &[id.0.into()]).await?.as_ref().map(read).transpose()
}

/// Entries whose time to be sent has passed and that are not on the wire. What SQLite has on the wire is known in memory only.
pub(crate) async fn list_expired(
    sql: &Sql<'_>,
    now: Timestamp,
    after: Option<(Timestamp, MessageId)>,
    limit: i64,
) -> Result<Vec<Claimed>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT server_id, message_id, domain, due_at, expires_at, attempts, pool_id, source_id FROM queue
         WHERE expires_at IS NOT NULL AND expires_at <= $1 AND (expires_at, message_id) > ($2, $3)
         ORDER BY expires_at, message_id LIMIT $4"
    } else {
        "SELECT server_id, message_id, domain, due_at, expires_at, attempts, pool_id, source_id FROM queue
         WHERE expires_at IS NOT NULL AND expires_at <= $1 AND (expires_at, message_id) > ($2, $3)
           AND begun_at IS NULL
         ORDER BY expires_at, message_id LIMIT $4"
    };
    let (after, after_id) = after.map_or((i64::MIN, 0), |(expires_at, id)| (expires_at.as_micros(), id.0));
    let rows = sql.query(text, &[now.into(), after.into(), after_id.into(), limit.into()]).await?;
    let read = |row: &Row| {
        Ok(Claimed {
            server_id: ServerId(row.int(0)?),
            message_id: MessageId(row.int(1)?),
            domain: domain(row, 2)?,
            due_at: row.time(3)?,
            expires_at: row.time_opt(4)?,
            attempts: row.int(5)? as u32,
            pool_id: row.int_opt(6)?.map(PoolId),
            source_id: row.int_opt(7)?.map(SourceId),
        })
    };
    rows.iter().map(read).collect()
}

/// The earliest due time that has passed.
pub(crate) async fn oldest_due(sql: &Sql<'_>, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT due_at FROM queue WHERE due_at <= $1 ORDER BY due_at, message_id LIMIT 1"
    } else {
        "SELECT due_at FROM queue WHERE claimed_node IS NULL AND scheduled = 0 AND due_at <= $1
         ORDER BY due_at, message_id LIMIT 1"
    };
    sql.query_opt(text, &[now.into()]).await?.map(|row| row.time(0)).transpose()
}

/// The server that a message is of.
pub(crate) async fn locate(sql: &Sql<'_>, id: MessageId) -> Result<Option<ServerId>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT m.server_id FROM servers s CROSS JOIN messages m WHERE m.server_id = s.id AND m.id = $1",
            &[id.0.into()],
        )
        .await?;
    row.map(|row| row.int(0).map(ServerId)).transpose()
}

pub(crate) async fn stats(sql: &Sql<'_>, now: Timestamp) -> Result<QueueStats, StoreError> {
    let counts =
        "SELECT count(*), coalesce(sum(CASE WHEN due_at <= $1 THEN 1 ELSE 0 END), 0), min(due_at) FROM queue";
    let counts = sql.query_opt(counts, &[now.into()]).await?.ok_or(StoreError::NotFound)?;
    let (total, due) = (counts.int(0)? as u64, counts.int(1)? as u64);
    let by_domain = sql
        .query(
            "SELECT domain, count(*) FROM queue GROUP BY domain ORDER BY count(*) DESC, domain LIMIT $1",
            &[LARGEST_DOMAINS.into()],
        )
        .await?;
    let by_domain = by_domain.iter().map(|row| Ok((domain(row, 0)?, row.int(1)? as u64)));
    Ok(QueueStats {
        total,
        due,
        scheduled: total - due,
        oldest_due_at: counts.time_opt(2)?,
        by_domain: by_domain.collect::<Result<_, StoreError>>()?,
    })
}

fn read(row: &Row) -> Result<QueueEntry, StoreError> {
    Ok(QueueEntry {
        message_id: MessageId(row.int(0)?),
        server_id: ServerId(row.int(1)?),
        server_name: row.text(2)?,
        domain: domain(row, 3)?,
        rcpt_to: row.text(4)?,
        status: row.name(5, Status::parse)?,
        due_at: row.time(6)?,
        expires_at: row.time_opt(7)?,
        attempts: row.int(8)? as u32,
        created_at: row.time(9)?,
        claimed: row.flag(10)?,
    })
}

fn domain(row: &Row, at: usize) -> Result<DomainName, StoreError> {
    row.name(at, |text| DomainName::parse(text).ok())
}
