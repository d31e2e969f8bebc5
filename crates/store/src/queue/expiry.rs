//! Lists queued messages whose `expires_at` has passed.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{MessageId, PoolId, ServerId, SourceId, Timestamp};

use super::claimed_entry::ClaimedEntry;
use super::listing::read_domain;
use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Queued messages whose `expires_at` has passed, claimed or not, beginning after the entry `after`.
    pub async fn list_expired(
        &self,
        after: Option<(Timestamp, MessageId)>,
        limit: usize,
    ) -> Result<Vec<ClaimedEntry>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(list_expired(sql, now, after, limit as i64))).await
    }
}

/// Expired entries; on PostgreSQL without those that are being sent. On SQLite, only the claims in memory know which
/// entries are being sent.
pub(crate) async fn list_expired(
    sql: &Sql<'_>,
    now: Timestamp,
    after: Option<(Timestamp, MessageId)>,
    limit: i64,
) -> Result<Vec<ClaimedEntry>, StoreError> {
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
        Ok(ClaimedEntry {
            server_id: ServerId(row.int(0)?),
            message_id: MessageId(row.int(1)?),
            domain: read_domain(row, 2)?,
            due_at: row.time(3)?,
            expires_at: row.time_opt(4)?,
            attempts: row.int(5)? as u32,
            pool_id: row.int_opt(6)?.map(PoolId),
            source_id: row.int_opt(7)?.map(SourceId),
        })
    };
    rows.iter().map(read).collect()
}
