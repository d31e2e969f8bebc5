//! Idempotency keys: what a key was used for, and forgetting old ones. They are written by `accept`.

use postroad_model::{ServerId, Timestamp};

use crate::error::StoreError;
use crate::records::StoredAnswer;
use crate::sql::Sql;

pub(crate) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    key: String,
    now: Timestamp,
) -> Result<Option<StoredAnswer>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT fingerprint, answer FROM idempotency_keys
             WHERE server_id = $1 AND key = $2 AND expires_at > $3",
            &[server_id.0.into(), key.into(), now.into()],
        )
        .await?;
    let Some(mut row) = row else { return Ok(None) };
    let fingerprint = row.take_blob(0)?;
    Ok(Some(StoredAnswer {
        fingerprint: fingerprint
            .try_into()
            .map_err(|_| StoreError::Internal("a fingerprint is not 32 bytes".into()))?,
        answer: row.text(1)?,
    }))
}

/// Forgets keys whose day is over, at most `limit` at a time; returns how many.
pub(crate) async fn purge(sql: &Sql<'_>, now: Timestamp, limit: i64) -> Result<u64, StoreError> {
    sql.execute(
        "DELETE FROM idempotency_keys WHERE (server_id, key) IN
         (SELECT server_id, key FROM idempotency_keys WHERE expires_at <= $1 ORDER BY expires_at, server_id, key LIMIT $2)",
        &[now.into(), limit.into()],
    )
    .await
}
