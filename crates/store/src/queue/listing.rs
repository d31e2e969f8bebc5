//! Lists and counts of the queue.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainName, MessageId, ServerId, Status, Timestamp};

use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Engine, Result, Store};

/// Maximum number of domains in `QueueStats::by_domain`.
const LARGEST_DOMAINS: i64 = 20;
/// Maximum number of entries of one server that are counted, or read for a page. If there are more, the portal puts `>`
/// before the count.
const COUNTED_MAX: i64 = 10_000;

/// Selects the entries to list; `None` for all.
#[derive(Debug, Clone, Default)]
pub struct QueueFilter {
    pub server_id: Option<ServerId>,
    /// The recipient's domain.
    pub domain: Option<DomainName>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueEntry {
    /// Whether a node has claimed the entry.
    pub claimed: bool,
    pub message_id: MessageId,
    pub server_id: ServerId,
    pub server_name: String,
    pub domain: DomainName,
    pub rcpt_to: String,
    pub status: Status,
    pub due_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub attempts: u32,
    pub created_at: Timestamp,
}

impl QueueEntry {
    /// Maximum number of entries that are read for a page of all servers; on PostgreSQL, for each of three kinds:
    /// unclaimed, scheduled and claimed entries.
    pub const READ_MAX: u64 = 20_000;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStats {
    pub total: u64,
    /// Due now or overdue.
    pub due: u64,
    /// Due later: scheduled, or waiting for the next attempt.
    pub scheduled: u64,
    /// Earliest due time, even if it is in the future.
    pub oldest_due_at: Option<Timestamp>,
    /// The twenty domains with the most entries.
    pub by_domain: Vec<(DomainName, u64)>,
    /// Whether there are more entries than were counted.
    pub has_more: bool,
}

/// Waiting messages of one server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerQueue {
    /// At most 10,000.
    pub total: u64,
    /// Counted entries that are due now or overdue.
    pub due: u64,
    /// Whether there are more entries than were counted.
    pub has_more: bool,
    /// Due time of the longest overdue message.
    pub oldest_due_at: Option<Timestamp>,
}

#[boxed_futures]
impl Store {
    /// Waiting messages of one server, counted up to 10,000 so that the time is limited.
    pub async fn count_queue_of_server(&self, server_id: ServerId) -> Result<ServerQueue> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(count_server_entries(sql, server_id, now))).await
    }

    /// Waiting messages by due time, beginning after the entry `after`. Reads at most the 10,000 oldest entries of a
    /// server, or `QueueEntry::READ_MAX` entries of all servers. This limits the time without an index that would slow
    /// down every accept.
    pub async fn list_queue_page(
        &self,
        filter: QueueFilter,
        after: Option<(Timestamp, MessageId)>,
        limit: usize,
    ) -> Result<Vec<QueueEntry>> {
        let listed = self.read(move |sql| Box::pin(list_page(sql, filter, after, limit as i64)));
        let mut entries = listed.await?;
        self.fill_in_claimed(&mut entries);
        Ok(entries)
    }

    /// Queue entries by due time, beginning after the entry `after`. Unlike `list_queue_page`, finds every entry,
    /// however long the queue is.
    pub async fn list_queue(
        &self,
        filter: QueueFilter,
        after: Option<(Timestamp, MessageId)>,
        limit: usize,
    ) -> Result<Vec<QueueEntry>> {
        let mut entries = self.read(move |sql| Box::pin(list(sql, filter, after, limit as i64))).await?;
        self.fill_in_claimed(&mut entries);
        Ok(entries)
    }

    /// The queue entry of a message of any server.
    pub async fn find_queued(&self, id: MessageId) -> Result<Option<QueueEntry>> {
        let mut entry = self.read(move |sql| Box::pin(find(sql, id))).await?;
        self.fill_in_claimed(entry.as_mut_slice());
        Ok(entry)
    }

    fn fill_in_claimed(&self, entries: &mut [QueueEntry]) {
        if let Engine::Sqlite { engine, .. } = &*self.engine {
            for entry in entries {
                entry.claimed = engine.is_claimed((entry.server_id, entry.message_id));
            }
        }
    }

    /// The server that a message belongs to.
    pub async fn locate_message(&self, id: MessageId) -> Result<Option<ServerId>> {
        self.read(move |sql| Box::pin(locate(sql, id))).await
    }

    /// Counts at most `count_max` entries.
    pub async fn queue_stats(&self, count_max: usize) -> Result<QueueStats> {
        let now = self.clock.now();
        let count_max = i64::try_from(count_max).unwrap_or(i64::MAX - 1);
        self.read(move |sql| Box::pin(stats(sql, now, count_max))).await
    }

    /// Due time of the longest overdue message. On PostgreSQL only of unclaimed messages: each node knows the messages
    /// that it has claimed.
    pub async fn oldest_due(&self) -> Result<Option<Timestamp>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(oldest_due(sql, now))).await
    }
}

/// Queue entries by due time, beginning after `after`. On SQLite the caller fills in `claimed`.
pub(crate) async fn list(
    sql: &Sql<'_>,
    filter: QueueFilter,
    after: Option<(Timestamp, MessageId)>,
    limit: i64,
) -> Result<Vec<QueueEntry>, StoreError> {
    // CROSS JOIN makes SQLite keep the order of the tables, and so use the index that is already sorted.
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

/// Statement that reads a page of the entries that `$read_from` selects. CROSS JOIN makes SQLite keep the order of the
/// tables.
macro_rules! page_text {
    ($claimed:literal, $read_from:literal) => {
        concat!(
            "SELECT q.message_id, q.server_id, s.name, q.domain, m.rcpt_to, m.status, q.due_at, q.expires_at, \
                    q.attempts, x.created_at, ",
            $claimed,
            " FROM (SELECT * FROM (",
            $read_from,
            ") AS waiting
                    WHERE (due_at, message_id) > ($3, $4) AND (domain = $6 OR $6 = '')
                    ORDER BY due_at, message_id LIMIT $5) AS q
              CROSS JOIN servers s CROSS JOIN messages m CROSS JOIN sends x
              WHERE s.id = q.server_id AND m.server_id = q.server_id AND m.id = q.message_id
                AND x.server_id = m.server_id AND x.id = m.send_id ORDER BY q.due_at, q.message_id"
        )
    };
}

async fn list_page(
    sql: &Sql<'_>,
    filter: QueueFilter,
    after: Option<(Timestamp, MessageId)>,
    limit: i64,
) -> Result<Vec<QueueEntry>, StoreError> {
    let text = match (filter.server_id.is_some(), sql.is_sqlite()) {
        (true, true) => {
            page_text!("0", "SELECT * FROM queue WHERE server_id = $1 ORDER BY message_id LIMIT $2")
        }
        (true, false) => page_text!(
            "(q.claimed_node IS NOT NULL)::int::bigint",
            "SELECT * FROM queue WHERE server_id = $1 ORDER BY message_id LIMIT $2"
        ),
        (false, true) => {
            page_text!("0", "SELECT * FROM queue WHERE $1 = 0 ORDER BY due_at, message_id LIMIT $2")
        }
        // Each `SELECT` of the union has an index, or finds few rows: nodes claim only as many messages as fit into
        // their memory.
        (false, false) => page_text!(
            "(q.claimed_node IS NOT NULL)::int::bigint",
            "(SELECT * FROM queue WHERE $1::bigint = 0 AND claimed_node IS NULL AND scheduled = 0
              ORDER BY due_at, message_id LIMIT $2)
             UNION ALL (SELECT * FROM queue WHERE scheduled > 0 ORDER BY due_at, message_id LIMIT $2)
             UNION ALL (SELECT * FROM queue WHERE claimed_node IS NOT NULL AND scheduled = 0
              ORDER BY due_at, message_id LIMIT $2)"
        ),
    };
    let (after, after_id) = after.map_or((i64::MIN, 0), |(due_at, id)| (due_at.as_micros(), id.0));
    let (server, read_max) =
        filter.server_id.map_or((0, QueueEntry::READ_MAX as i64), |id| (id.0, COUNTED_MAX));
    let domain = filter.domain.as_ref().map_or("", DomainName::as_str);
    let params = [server.into(), read_max.into(), after.into(), after_id.into(), limit.into(), domain.into()];
    sql.query(text, &params).await?.iter().map(read).collect()
}

/// One entry of any server: a point lookup for each server, because all keys begin with the server.
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

/// The earliest due time in the past.
pub(crate) async fn oldest_due(sql: &Sql<'_>, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    let text = if sql.is_sqlite() {
        "SELECT due_at FROM queue WHERE due_at <= $1 ORDER BY due_at, message_id LIMIT 1"
    } else {
        "SELECT due_at FROM queue WHERE claimed_node IS NULL AND scheduled = 0 AND due_at <= $1
         ORDER BY due_at, message_id LIMIT 1"
    };
    sql.query_opt(text, &[now.into()]).await?.map(|row| row.time(0)).transpose()
}

/// The server that a message belongs to.
pub(crate) async fn locate(sql: &Sql<'_>, id: MessageId) -> Result<Option<ServerId>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT m.server_id FROM servers s CROSS JOIN messages m WHERE m.server_id = s.id AND m.id = $1",
            &[id.0.into()],
        )
        .await?;
    row.map(|row| row.int(0).map(ServerId)).transpose()
}

/// Counts the oldest entries: message ids grow with time, and the primary key has the order of the ids.
async fn count_server_entries(
    sql: &Sql<'_>,
    server_id: ServerId,
    now: Timestamp,
) -> Result<ServerQueue, StoreError> {
    let text = "SELECT count(*), coalesce(sum(CASE WHEN due_at <= $2 THEN 1 ELSE 0 END), 0),
                       min(CASE WHEN due_at <= $2 THEN due_at END)
                FROM (SELECT due_at FROM queue WHERE server_id = $1 ORDER BY message_id LIMIT $3) AS counted";
    let params = [server_id.0.into(), now.into(), (COUNTED_MAX + 1).into()];
    let row = sql.query_opt(text, &params).await?.ok_or(StoreError::NotFound)?;
    let total = row.int(0)?;
    Ok(ServerQueue {
        total: total.min(COUNTED_MAX) as u64,
        due: row.int(1)?.min(COUNTED_MAX) as u64,
        has_more: total > COUNTED_MAX,
        oldest_due_at: row.time_opt(2)?,
    })
}

pub(crate) async fn stats(sql: &Sql<'_>, now: Timestamp, count_max: i64) -> Result<QueueStats, StoreError> {
    let text = "SELECT count(*), coalesce(sum(CASE WHEN due_at <= $1 THEN 1 ELSE 0 END), 0), min(due_at)
                  FROM (SELECT due_at FROM queue LIMIT $2) AS counted";
    let counts =
        sql.query_opt(text, &[now.into(), (count_max + 1).into()]).await?.ok_or(StoreError::NotFound)?;
    let (total, due) = (counts.int(0)?, counts.int(1)?);
    let has_more = total > count_max;
    let (total, due) = (total.min(count_max) as u64, due.min(count_max) as u64);
    let by_domain = sql
        .query(
            "SELECT domain, count(*) FROM (SELECT domain FROM queue LIMIT $2) AS counted
             GROUP BY domain ORDER BY count(*) DESC, domain LIMIT $1",
            &[LARGEST_DOMAINS.into(), count_max.into()],
        )
        .await?;
    let by_domain = by_domain.iter().map(|row| Ok((read_domain(row, 0)?, row.int(1)? as u64)));
    Ok(QueueStats {
        total,
        due,
        scheduled: total - due,
        oldest_due_at: counts.time_opt(2)?,
        by_domain: by_domain.collect::<Result<_, StoreError>>()?,
        has_more,
    })
}

pub(crate) fn read(row: &Row) -> Result<QueueEntry, StoreError> {
    Ok(QueueEntry {
        message_id: MessageId(row.int(0)?),
        server_id: ServerId(row.int(1)?),
        server_name: row.text(2)?,
        domain: read_domain(row, 3)?,
        rcpt_to: row.text(4)?,
        status: row.parsed(5, Status::parse)?,
        due_at: row.time(6)?,
        expires_at: row.time_opt(7)?,
        attempts: row.int(8)? as u32,
        created_at: row.time(9)?,
        claimed: row.flag(10)?,
    })
}

pub(crate) fn read_domain(row: &Row, at: usize) -> Result<DomainName, StoreError> {
    row.parsed(at, |text| DomainName::parse(text).ok())
}
