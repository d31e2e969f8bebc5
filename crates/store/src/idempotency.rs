//! Idempotency keys: finds the answer to an earlier request, and removes expired keys. `accept` writes the keys.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, Timestamp};

use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

/// An idempotency key to store, with the answer that every repetition of its request gets.
#[derive(Debug, Clone)]
pub struct Idempotency {
    pub key: String,
    /// Hash of the request without the key.
    pub fingerprint: [u8; 32],
    /// The answer to the first request and to every repetition.
    pub answer: String,
    pub expires_at: Timestamp,
}

/// Fingerprint and answer of the first request with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    pub fingerprint: [u8; 32],
    pub answer: String,
}

#[boxed_futures]
impl Store {
    pub async fn find_idempotent_answer(
        &self,
        server_id: ServerId,
        key: String,
    ) -> Result<Option<StoredAnswer>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(find(sql, server_id, key, now))).await
    }

    /// Removes expired idempotency keys, at most `limit`; returns how many.
    pub async fn purge_idempotency_keys(&self, limit: usize) -> Result<u64> {
        let now = self.clock.now();
        let limit = limit as i64;
        self.execute(
            "DELETE FROM idempotency_keys WHERE (server_id, key) IN
             (SELECT server_id, key FROM idempotency_keys WHERE expires_at <= $1 ORDER BY expires_at, server_id, key LIMIT $2)",
            vec![now.into(), limit.into()],
        )
        .await
    }
}

/// Hash that is stored instead of a key that contained an erased address.
pub(crate) fn erased_key(server_id: ServerId, key: &str) -> String {
    let text = format!("postroad idempotency key {} {key}", server_id.0);
    format!("erased:{}", BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes())))
}

pub(crate) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    key: String,
    now: Timestamp,
) -> Result<Option<StoredAnswer>, StoreError> {
    let erased = erased_key(server_id, &key);
    let row = sql
        .query_opt(
            // Not `key IN ($2, $4)`: for that SQLite would fill a temporary table.
            "SELECT fingerprint, answer FROM idempotency_keys WHERE server_id = $1 AND key = $2 AND expires_at > $3
             UNION ALL
             SELECT fingerprint, answer FROM idempotency_keys WHERE server_id = $1 AND key = $4 AND expires_at > $3
             LIMIT 1",
            &[server_id.0.into(), key.into(), now.into(), erased.into()],
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
