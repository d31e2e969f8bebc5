//! Finds one suppression, lists the suppressions of a server.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{MessageId, ServerId, SuppressionReason, Timestamp};

use super::record::{Suppression, SuppressionCursor, SuppressionFilter, address_key, erased_key};
use crate::error::StoreError;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

/// SQL text of a page of the suppressions with a reason; `$index` is a hint for SQLite.
macro_rules! page_by_reason {
    ($index:literal) => {
        concat!(
            "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions ",
            $index,
            " WHERE server_id = $1 AND reason = $8 AND created_at >= $2 AND created_at < $3
                  AND created_at <= $4 AND (created_at < $4 OR address > $5)
                  AND (expires_at IS NULL OR expires_at > $6)
              ORDER BY created_at DESC, address LIMIT $7"
        )
    };
}

#[boxed_futures]
impl Store {
    /// The suppression of an address; `None` also if it has expired.
    pub async fn find_suppression(
        &self,
        server_id: ServerId,
        address: String,
    ) -> Result<Option<Suppression>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(find(sql, server_id, address, now))).await
    }

    /// Suppressions of a server that have not expired, newest first, beginning after the entry `after`.
    pub async fn list_suppressions(
        &self,
        server_id: ServerId,
        filter: SuppressionFilter,
        after: Option<SuppressionCursor>,
        limit: usize,
    ) -> Result<Vec<Suppression>> {
        let now = self.clock.now();
        let limit = limit as i64;
        let since = filter.since.map_or(i64::MIN, Timestamp::as_micros);
        let before = filter.until.map_or(i64::MAX, Timestamp::as_micros);
        let (from, address) =
            after.map_or((i64::MAX, String::new()), |cursor| (cursor.created_at.as_micros(), cursor.address));
        let mut params = vec![
            server_id.0.into(),
            since.into(),
            before.into(),
            from.into(),
            address.into(),
            now.into(),
            limit.into(),
        ];
        let text = match filter.reason {
            None => {
                "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
                 WHERE server_id = $1 AND created_at >= $2 AND created_at < $3
                     AND created_at <= $4 AND (created_at < $4 OR address > $5)
                     AND (expires_at IS NULL OR expires_at > $6)
                 ORDER BY created_at DESC, address LIMIT $7"
            }
            Some(reason) => {
                params.push(reason.as_str().into());
                // Without the hint, SQLite (which has no statistics of this table) would walk all suppressions by time.
                if self.is_sqlite() {
                    page_by_reason!("INDEXED BY suppressions_by_reason")
                } else {
                    page_by_reason!("")
                }
            }
        };
        self.fetch_all(text, params, read).await
    }

    /// Suppressions of a server that have not expired, by address, beginning after the address `after`.
    pub async fn list_suppressions_by_address(
        &self,
        server_id: ServerId,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<Suppression>> {
        let now = self.clock.now();
        let limit = limit as i64;
        self.fetch_all(
            "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
             WHERE server_id = $1 AND address > $2 AND (expires_at IS NULL OR expires_at > $3)
             ORDER BY address LIMIT $4",
            vec![server_id.0.into(), after.unwrap_or_default().into(), now.into(), limit.into()],
            read,
        )
        .await
    }
}

pub(crate) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    address: String,
    now: Timestamp,
) -> Result<Option<Suppression>, StoreError> {
    let key = address_key(&address);
    let erased = erased_key(server_id, &key);
    let row = sql
        .query_opt(
            // `UNION ALL`, because SQLite would fill a temporary table for `IN` with both keys.
            "SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
             WHERE server_id = $1 AND address = $2 AND (expires_at IS NULL OR expires_at > $4)
             UNION ALL
             SELECT address, reason, details, origin_message_id, created_at, expires_at FROM suppressions
             WHERE server_id = $1 AND address = $3 AND (expires_at IS NULL OR expires_at > $4) LIMIT 1",
            &[server_id.0.into(), key.into(), erased.into(), now.into()],
        )
        .await?;
    row.as_ref().map(read).transpose()
}

pub(crate) fn read(row: &Row) -> Result<Suppression, StoreError> {
    Ok(Suppression {
        address: row.text(0)?,
        reason: row.parsed(1, SuppressionReason::parse)?,
        details: row.text(2)?,
        origin_message_id: row.int_opt(3)?.map(MessageId),
        created_at: row.time(4)?,
        expires_at: row.time_opt(5)?,
    })
}
